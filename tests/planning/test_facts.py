"""What a checkpoint belongs to: names, numbers and types, whatever they are described as."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpu_windows as gw
from gpu_windows.errors import StateCorruptedError, StateMismatchError, StateVersionError
from gpu_windows.functions.process import Process
from gpu_windows.functions.window import Aggregates, Reduce
from gpu_windows.planning.facts import describe_changes, fact_of, facts_of
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.contract.manifest import Manifest
from tests.operators.joins.interval_joins import in_time
from tests.operators.joins.rows import table
from tests.operators.joins.temporal_join import NOTHING, Case
from tests.planning.queries import query
from tests.spark_glue.shard import Shard, input_of

Row = Mapping[str, Any]
TUMBLING = gw.TumblingEventTimeWindows(10)
VALUE = "i"  # a column of the input


def total(accumulator: pa.DataType) -> gw.typing.UserAggregate:
    """A user's aggregate, always of the same name, with this type."""

    class Total(gw.functions.AggregateFunction):
        def create_accumulator(self) -> int:
            return 0

        def add(self, row: Row, accumulator: int) -> int:
            return accumulator + (row[VALUE] or 0)

        def get_result(self, accumulator: int) -> int:
            return accumulator

    Total.accumulator, Total.result = accumulator, pa.int64()
    return gw.user_aggregate(Total(), VALUE)


def trigger(limit: int = 2, **state: pa.DataType) -> gw.functions.Trigger:
    """A user's trigger that keeps ``state``."""

    class Sometimes(gw.EventTimeTrigger):
        pass

    Sometimes.state = property(lambda _: state)  # type: ignore[assignment,method-assign]
    made = Sometimes()
    object.__setattr__(made, "limit", limit)
    return made


@dataclass
class ByParameter(gw.functions.Evictor):
    """A user's evictor."""

    limit: int
    cache: dict[str, int] = field(default_factory=dict)


class ByAttribute(gw.functions.Evictor):
    """Another one, that is no dataclass."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._calls = id(self)


def process(columns: tuple[str, ...] = (VALUE,), **state: pa.DataType) -> Process:
    """A user's process function that keeps ``state`` of a key."""

    class Last(gw.functions.ProcessWindowFunction):
        key_state = state

        def process(self, key: Row, context: Any, rows: pa.Table) -> list[Row]:
            return [{"n": rows.num_rows}]

    return Process(Last(), columns, pa.schema([("n", pa.int64())]))


def earlier(one: Row, _: Row) -> Row:
    return one


def later(_: Row, other: Row) -> Row:
    return other


def weighted(weight: int, one: Row, other: Row) -> Row:
    return one if weight else other


def aggregated(**aggregates: gw.typing.Aggregate | gw.typing.UserAggregate) -> Any:
    from gpu_windows.datastream.columns import bind_any

    schema = query(TUMBLING).schema
    return Aggregates(tuple(bind_any(n, a, schema) for n, a in aggregates.items()))


def planned(assigner: gw.functions.WindowAssigner = TUMBLING, **parts: Any) -> Plan:
    return plan(query(assigner, **parts), bounded=False, spark=True, crosses_quickly=True)


def of_function(function: Any) -> Plan:
    return plan(
        replace(query(TUMBLING), function=function),
        bounded=False,
        spark=True,
        crosses_quickly=True,
    )


#: Two queries, and how their difference is told.
CHANGED: dict[str, tuple[Callable[[], Plan], Callable[[], Plan], str]] = {
    "accumulator": (
        lambda: of_function(aggregated(n=total(pa.int64()))),
        lambda: of_function(aggregated(n=total(pa.float64()))),
        "function.of.n.function.accumulator was int64, is double",
    ),
    "nested accumulator": (
        lambda: of_function(aggregated(n=total(pa.struct([("a", pa.int64())])))),
        lambda: of_function(aggregated(n=total(pa.struct([("a", pa.int32())])))),
        "function.of.n.function.accumulator.struct of.a was int64, is int32",
    ),
    "added state": (
        lambda: of_function(process()),
        lambda: of_function(process(seen=pa.int64())),
        "function.function.key_state was not there, is (seen=int64)",
    ),
    "state of another type": (
        lambda: of_function(process(seen=pa.int64())),
        lambda: of_function(process(seen=pa.string())),
        "function.function.key_state.seen was int64, is string",
    ),
    "state of a trigger": (
        lambda: planned(trigger=trigger(seen=pa.int64())),
        lambda: planned(trigger=trigger(seen=pa.int64(), more=pa.bool_())),
        "trigger.state.more was not there, is bool",
    ),
    "an attribute": (
        lambda: planned(evictor=ByAttribute(3)),
        lambda: planned(evictor=ByAttribute(4)),
        "evictor.limit was 3, is 4",
    ),
    "a parameter": (
        lambda: planned(evictor=ByParameter(3)),
        lambda: planned(evictor=ByParameter(4)),
        "evictor.limit was 3, is 4",
    ),
    "another evictor": (
        lambda: planned(evictor=ByParameter(3)),
        lambda: planned(evictor=ByAttribute(3)),
        "evictor was tests.planning.test_facts.ByParameter(limit=3), "
        "is tests.planning.test_facts.ByAttribute(limit=3)",
    ),
    "no evictor": (
        lambda: planned(evictor=gw.CountEvictor.of(3)),
        planned,
        "evictor was CountEvictor(evict_after_function=False, limit=3), is not there; "
        "strategy was buffer, is slices",
    ),
    "another function": (
        lambda: of_function(Reduce(earlier, (VALUE,))),
        lambda: of_function(Reduce(later, (VALUE,))),
        "function.function was tests.planning.test_facts.earlier, "
        "is tests.planning.test_facts.later",
    ),
    "another bound argument": (
        lambda: of_function(Reduce(partial(weighted, 1), (VALUE,))),
        lambda: of_function(Reduce(partial(weighted, 2), (VALUE,))),
        "function.function.arguments was 1, is 2",
    ),
    "another order": (
        lambda: replace(planned(), order=("ts", "i")),
        lambda: replace(planned(), order=("i", "ts")),
        "order of arrival was ts, i, is i, ts",
    ),
    "a type": (
        planned,
        lambda: plan(
            replace(query(TUMBLING), schema=_with_type("part", pa.int64())),
            bounded=False,
            spark=True,
            crosses_quickly=True,
        ),
        "columns.part was int32, is int64; results.part was int32, is int64",
    ),
    "a condition": (
        lambda: _joined(pc.field("left_v") > 3),
        lambda: _joined(pc.field("left_v") > 4),
        "join.pair.condition was (left_v > 3), is (left_v > 4)",
    ),
    "a bound": (
        lambda: _joined(None, 5),
        lambda: _joined(None, 6),
        "join.upper was 5 us, is 6 us",
    ),
    "how long a version is valid": (
        lambda: Case(lives=2_000_000).outputs(*NOTHING).plan,
        lambda: Case(lives=90_000_000).outputs(*NOTHING).plan,
        "join.valid_for was 2 s, is 1 min 30 s",
    ),
}


def _with_type(name: str, dtype: pa.DataType) -> pa.Schema:
    schema = query(TUMBLING).schema
    at = schema.get_field_index(name)
    return schema.set(at, schema.field(name).with_type(dtype))


def _joined(condition: pc.Expression | None, upper: int = 5) -> Plan:
    return in_time(table([]), table([]), (-5, upper), where=condition).plan


@pytest.mark.parametrize("name", CHANGED)
def test_what_has_changed_is_named(name: str) -> None:
    before, after, text = CHANGED[name]
    kept = json.loads(json.dumps(facts_of(before())))
    assert not list(describe_changes(kept, facts_of(before())))
    found = "; ".join(describe_changes(kept, facts_of(after())))
    assert found.startswith(text) if "argument" in found else found == text
    with pytest.raises(StateMismatchError) as error:
        Manifest.of(after()).resume(Manifest.of(before()), {})
    assert error.value.value == found


def test_what_has_changed_is_told_in_the_words_of_queries() -> None:
    sums = aggregated(total=gw.sum(VALUE))
    more = aggregated(
        total=gw.sum(VALUE), of_most=gw.arg_max("text", VALUE), q=gw.quantile("f", 0.5)
    )
    found = describe_changes(facts_of(of_function(sums)), facts_of(of_function(more)))
    assert [*found][:3] == [
        "columns was key string, part int32, ts int64, i int64, "
        "is key string, part int32, ts int64, i int64, text string, f double",
        "function.of.of_most was not there, is arg_max(text, i)",
        "function.of.q was not there, is quantile(f, fraction=0.5)",
    ]
    rows = gw.stream(pa.table({"ts": pa.array([], pa.timestamp("us", "UTC"))}))
    timed = rows.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    before, after = (
        facts_of(each.key_by("ts").count_window(3).with_outputs().aggregate(n=gw.count()).plan)
        for each in (rows, timed)
    )
    told = "; ".join(describe_changes(before, after))
    assert "time was no time, is ts" in told
    assert "__" not in told


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (
            gw.SlidingEventTimeWindows.of("1 hour", "90 s"),
            gw.SlidingEventTimeWindows.of("2 hours", "90 s", "5 s"),
            "offset was not there, is 5 s; size was 1 h, is 2 h",
        ),
        (
            gw.MultiLengthEventTimeWindows.of("1 minute", "5 minutes"),
            gw.MultiLengthEventTimeWindows.of("1 minute", "1 hour"),
            "lengths was 1 min, 5 min, is 1 min, 1 h",
        ),
        (
            gw.TumblingEventTimeWindows.of("1 minute"),
            gw.EventTimeSessionWindows.with_gap("30 s"),
            " was TumblingEventTimeWindows(size=1 min), is EventTimeSessionWindows(gap=30 s",
        ),
        (gw.Range("1 minute"), gw.Range(None), "lower was -1 min, is unbounded"),
        (gw.Rows(60), gw.Rows(90), "lower was -60, is -90"),
        (ByParameter(3), ByParameter(4), "limit was 3, is 4"),
    ],
)
def test_durations_are_told_as_durations(before: object, after: object, text: str) -> None:
    assert "; ".join(describe_changes(fact_of(before), fact_of(after))).startswith(text)


def test_a_parameter_at_its_default_is_no_fact() -> None:
    """So a later version may add parameters."""
    assert fact_of(gw.CountTrigger(3)) == {"class": "CountTrigger", "limit": 3}
    assert fact_of(TUMBLING) == {"class": "TumblingEventTimeWindows", "size": 10}
    assert fact_of(gw.TumblingEventTimeWindows(10, 3))["offset"] == 3


def test_reworded_descriptions_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = planned(evictor=gw.CountEvictor.of(3))
    shard = Shard(before)
    shard.micro_batch(None, input_of(before))
    text = Manifest.of(before).text
    for kind in (
        gw.TumblingEventTimeWindows,
        gw.EventTimeTrigger,
        gw.CountEvictor,
        gw.typing.Aggregate,
    ):
        monkeypatch.setattr(kind, "describe", lambda _: "in other words")
    again = Manifest.of(before)
    assert again.described["window"] == "in other words"
    assert again.resume(Manifest.from_text(text), {}) == again
    assert shard.micro_batch(LONG_MAX) > 1


@pytest.mark.parametrize(
    ("text", "kind", "rule"),
    [
        ('{"window": "tumbling 10 us", "shards": "4"}', StateVersionError, "format 5 .*, got 1$"),
        ('{"format": 6, "facts": {}}', StateVersionError, "format 5 .*, got 6$"),
        ("{", StateCorruptedError, "what gpu_windows wrote"),
        ("[]", StateCorruptedError, "what gpu_windows wrote"),
    ],
)
def test_manifests_of_other_formats(text: str, kind: type[Exception], rule: str) -> None:
    with pytest.raises(kind, match=rule):
        Manifest.from_text(text)


class Outer(gw.functions.Trigger):
    """A user's trigger around another one."""

    def __init__(self, inner: gw.functions.Trigger) -> None:
        self.inner = inner

    def on_element(self, row: Row, *_: Any) -> gw.functions.TriggerResult:
        return gw.functions.TriggerResult.CONTINUE

    def clear(self, *_: Any) -> None:
        """Keep nothing."""

    @property
    def parts(self) -> tuple[gw.functions.Trigger, ...]:
        return (self.inner,)


class Limited(gw.EventTimeTrigger):
    """A user's subclass of a class of ours, which is a dataclass."""

    def __init__(self, limit: object) -> None:
        object.__setattr__(self, "limit", limit)


def _defaulted(default: int) -> object:
    @dataclass
    class Keeps(gw.functions.Evictor):
        limit: int = default
        seen: dict[str, int] = field(default_factory=lambda: {"a": default})

    return Keeps()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Outer(gw.CountTrigger.of(3)), Outer(gw.CountTrigger.of(5))),
        (Limited(3), Limited(4)),
        (Limited(("a",)), Limited(("b",))),
        (_defaulted(3), _defaulted(5)),
        (partial(max, np.int64(1)), partial(max, np.int64(2))),
        (partial(max, Decimal(1), Decimal(2)), partial(max, Decimal(3), Decimal(2))),
        (partial(max, date(2020, 1, 1)), partial(max, date(2020, 1, 2))),
        (partial(max, pa.scalar(1)), partial(max, pa.scalar(2))),
        (partial(max, {1, 2}), partial(max, {1, 3})),
        (itemgetter("a"), itemgetter("b")),
        (pc.field("x").isin(range(50)), pc.field("x").isin([*range(25), 99, *range(26, 50)])),
        (str.lower, str.upper),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_all_kinds_are_facts(one: object, other: object) -> None:
    before, after = (json.loads(json.dumps(fact_of(each))) for each in (one, other))
    assert before == json.loads(json.dumps(fact_of(one)))
    assert list(describe_changes(before, after))


def test_what_user_code_changes_as_it_runs_is_no_fact() -> None:
    one, other = _defaulted(3), _defaulted(3)
    other.seen["b"] = 5  # type: ignore[attr-defined]
    assert fact_of(one) == fact_of(other)


@pytest.mark.parametrize("text", ['{"format": 5}', '{"format": 5, "facts": 3, "described": {}}'])
def test_a_manifest_without_its_parts_is_told(text: str) -> None:
    with pytest.raises(StateCorruptedError, match="must be what gpu_windows wrote"):
        Manifest.from_text(text)
