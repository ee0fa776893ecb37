"""What a start compares of a query of several stages whose results may begin empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import StateCorruptedError, StateMismatchError
from gpu_windows.planning.added_results import with_rows_since
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.spark_glue.contract.manifest import Manifest

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("w", pa.int64())])
#: Of the number of rows, and of both halves of a sum.
NAMES = ["__p17662fea896f", "__p368795a78caa", "__pe0dd72f69c66"]
N, TOTAL, LEAST = {"n": gw.count()}, {"total": gw.sum("v")}, {"least": gw.min("w")}


def planned(aggregates: Mapping[str, gw.typing.Aggregate], size: int = 10) -> Plan:
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    timed = gw.stream(SCHEMA.empty_table()).event_time("ts", strategy)
    windowed = timed.key_by("k").window(gw.TumblingEventTimeWindows(size))
    return plan(
        windowed.with_outputs().aggregate(**aggregates).plan.query, bounded=False, spark=True
    )


class Stages:
    """A query of a first stage, which has a name, and a last one."""

    def __init__(
        self,
        first: Mapping[str, gw.typing.Aggregate],
        last: Mapping[str, gw.typing.Aggregate],
        size: int = 10,
    ) -> None:
        self.plans = {"minutes": planned(first, size), "": planned(last)}
        facts = {f"minutes.{n}": f for n, f in Manifest.of(self.plans["minutes"]).facts.items()}
        self.manifest = Manifest({**Manifest.of(self.plans[""]).facts, **facts})

    def resume(self, before: Manifest, *names: str) -> Manifest:
        """Return what the checkpoint has after a start on one, as a later start reads it."""
        return Manifest.from_text(self.manifest.resume(before, self.plans, names).text)


def test_each_stage_has_results_that_began() -> None:
    old = Stages(N, N).manifest
    one = Stages({**N, **TOTAL}, N).resume(old, "total")
    assert one.begun == {"minutes": {"total": 1}}
    two = Stages({**N, **TOTAL, **LEAST}, {**N, **TOTAL}).resume(one, "least", "total")
    assert two.begun == {"minutes": {"total": 1, "least": 2}, "": {"total": 1}}
    again = Stages({**N, **TOTAL, **LEAST}, {**N, **TOTAL})
    assert again.resume(two, "least", "total") == two
    assert again.resume(two) == two


def test_only_what_was_named_may_begin() -> None:
    old = Stages(N, N).manifest
    both = Stages({**N, **TOTAL}, {**N, **LEAST})
    with pytest.raises(StateMismatchError, match=r"minutes\.function\.of\.total") as error:
        both.resume(old, "least")
    assert "begin_empty=['total']" in str(error.value)
    with pytest.raises(StateMismatchError, match=r"function\.of\.least"):
        both.resume(old, "total")


def test_what_else_has_changed_is_told_without_a_remedy() -> None:
    old = Stages(N, N).manifest
    with pytest.raises(
        StateMismatchError, match=r"minutes\.window\.size was 10 .s, is 20"
    ) as error:
        Stages({**N, **TOTAL}, N, size=20).resume(old, "total")
    assert "begin_empty" not in str(error.value)
    assert "total" not in str(error.value)


def test_what_is_gone_is_refused() -> None:
    """Also what has begun later: it would not be complete when it came again."""
    old = Stages(N, N).manifest
    one = Stages({**N, **TOTAL}, N).resume(old, "total")
    with pytest.raises(StateMismatchError, match=r"of\.total was sum\(v\), is not there"):
        Stages(N, N).resume(one, "total")


def test_partials_of_what_began_are_its_own() -> None:
    made = planned({**N, **TOTAL, "mean": gw.mean("v")})
    begun = with_rows_since(made, {"mean": 1})
    assert len(begun.partials) == len(made.partials) + 3
    assert {each.since for each in begun.partials} == {0, 1}
    assert len({each.name for each in begun.partials}) == len(begun.partials)
    assert with_rows_since(made, {"mean": 1, "total": 1}).partials != begun.partials
    assert begun.lacking.names == []
    assert with_rows_since(planned({**N, **LEAST}), {"least": 1}).lacking.names == ["w"]


def test_names_of_partials_are_those_that_state_has() -> None:
    """A checkpoint is read by them, so they stay as they are."""
    assert [each.name for each in planned({**N, **TOTAL}).partials] == NAMES


@pytest.mark.parametrize("begun", ['{"": 3}', '{"": {"n": "x"}}', "3", '{"": ["n"]}'])
def test_a_manifest_that_is_damaged_is_told(begun: str) -> None:
    text = replace(Manifest.of(planned(N)), described={}).text
    damaged = text.replace('"begun": {}', f'"begun": {begun}')
    assert damaged != text
    with pytest.raises(StateCorruptedError, match="must be what gpu_windows wrote"):
        Manifest.from_text(damaged)
