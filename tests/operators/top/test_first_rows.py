"""The first rows of keys against plain Python: changes, time to live, state that is put away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.operators.build import restore_operator
from gpu_windows.operators.columns.top_n import first_rows
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.operators.top import top_rows
from gpu_windows.planning.own_columns import NO_TIME
from gpu_windows.planning.plan import Plan, explain
from gpu_windows.planning.planner import plan
from gpu_windows.vocabulary.options import Options
from tests.examples import examples
from tests.operators.state.counting import Counting
from tests.spark_glue.shard import Shard

SCHEMA = pa.schema(
    [("k", pa.string()), ("v", pa.float64()), ("w", pa.int64()), ("seq", pa.int64())]
)
LIVES = 5
VALUES = (None, float("nan"), 0.5, 1.5, 2.0, -1.0)

Row = tuple[Any, ...]  # k, v, w, seq
#: Time, and the rows that come then.
Step = tuple[int, list[Row]]


def asked(count: int, number: str | None, *, lives: int | None = None, **options: Any) -> Plan:
    """A plan for streams; a tick is a millisecond."""
    outputs = (
        gw.stream(SCHEMA.empty_table())
        .key_by("k")
        .with_outputs()
        .top(
            count,
            ["v", "w"],
            descending=[True, False],
            columns=["seq", "v"],
            number=number,
            time_to_live=None if lives is None else f"{lives} us",
            arrival_order=["seq"],
            **options,
        )
    )
    return plan(outputs.plan.query, bounded=False, spark=True)


@dataclass
class Plain:
    """The first rows of keys, by sorting all that a key has had since it was forgotten."""

    count: int
    lives: int | None = None
    rows: dict[Any, list[Row]] = field(default_factory=dict)
    last: dict[Any, int] = field(default_factory=dict)

    def step(self, step: Step) -> dict[Any, list[Row]]:
        """Take what comes; return the first rows of keys."""
        time, rows = step
        for key, last in [*self.last.items()]:
            if self.lives is not None and last + self.lives <= time:
                del self.rows[key], self.last[key]
        for row in rows:
            self.rows.setdefault(row[0], []).append(row)
            self.last[row[0]] = time
        return {key: sorted(rows, key=_rank)[: self.count] for key, rows in self.rows.items()}


def _rank(row: Row) -> Any:
    """NaN are more than any value, nulls less; the greatest come first, of ``w`` the least."""
    _, v, w, seq = row
    kind = 0 if v is None else 2 if isnan(v) else 1
    return (-kind, -v if kind == 1 else 0, w is not None, 0 if w is None else w, seq)


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table."""
    columns = ([row[i] for row in rows] for i in range(len(SCHEMA)))
    return pa.table([*map(pa.array, columns, SCHEMA.types)], schema=SCHEMA)


def taken(planned: Plan, rows: Sequence[Row]) -> pa.Table:
    """Rows as an operator takes them."""
    nothing = pa.nulls(len(rows), pa.int64())
    return table_of(rows).append_column(NO_TIME, nothing).select(planned.input_columns)


def given_by(planned: Plan, steps: Sequence[Step]) -> Iterator[list[dict[str, Any]]]:
    """Yield the changes of each micro-batch; each runs twice, the first time it is lost."""
    saved = MemoryLog()
    for time, rows in steps:
        found = []
        for _ in range(2):
            store = saved.copy()
            shard = Shard(planned, store)
            tables = [taken(planned, rows)] if rows else []
            emitted = [each.results for each in shard.emissions(tables, now=time)]
            found.append(pa.concat_tables(emitted).to_pylist())
        assert repr(found[0]) == repr(found[1])  # NaN is not NaN
        saved = store
        yield found[0]
        held = restore_operator(planned, saved.copy()).state_size()
        assert shard.finished is not None
        assert shard.finished.measures.state_rows == held["keys"] + held["rows"]


def fold(table: dict[Any, Any], changes: list[dict[str, Any]], *, numbered: bool) -> None:
    """Change a table, which must be as each change says, and differ afterwards."""
    for change in changes:
        key = (change["k"], change["row_number"] if numbered else change["seq"])
        row = (change["seq"], repr(change["v"]))
        match change["change"]:
            case "insert":
                assert key not in table
                table[key] = row
            case "update_after":
                assert table[key] != row
                table[key] = row
            case "delete":
                assert table.pop(key) == row
            case _:
                raise AssertionError(change)


def shown(first: dict[Any, list[Row]], *, numbered: bool) -> dict[Any, Any]:
    """The table of the first rows, as `fold` makes it."""
    return {
        (key, number if numbered else row[3]): (row[3], repr(row[1]))
        for key, rows in first.items()
        for number, row in enumerate(rows, 1)
    }


def drawn(seed: int, steps: int = 12) -> list[Step]:
    rng = np.random.default_rng(seed)
    found, time, seq = [], 0, 0
    for _ in range(steps):
        time += int(rng.integers(0, 4))
        rows: list[Row] = []
        for _ in range(int(rng.choice([0, 1, 3, 12]))):
            key = rng.choice(["a", "b", "c", "d"]) if rng.random() < 0.9 else None
            v = VALUES[rng.integers(0, len(VALUES))]
            w = None if rng.random() < 0.2 else int(rng.integers(0, 3))
            rows.append((None if key is None else str(key), v, w, seq))
            seq += 1
        found.append((time, rows))
    return found


@examples(80)
@given(
    seed=st.integers(0, 1 << 30),
    count=st.integers(1, 4),
    numbered=st.booleans(),
    lives=st.sampled_from([None, LIVES]),
    batch_rows=st.sampled_from([1, 1 << 17]),
)
def test_the_table_is_what_all_rows_say(
    seed: int, count: int, numbered: bool, lives: int | None, batch_rows: int
) -> None:
    steps = drawn(seed)
    number = "row_number" if numbered else None
    planned = asked(count, number, lives=lives, batch_rows=batch_rows)
    plain = Plain(count, lives)
    table: dict[Any, Any] = {}
    by_number = numbered or count == 1
    for step, changes in zip(steps, given_by(planned, steps), strict=True):
        if not numbered and count == 1:
            changes = [{**change, "row_number": 1} for change in changes]
        fold(table, changes, numbered=by_number)
        assert table == shown(plain.step(step), numbered=by_number)


def test_a_key_that_is_forgotten_begins_anew() -> None:
    steps: list[Step] = [
        (0, [("a", 3.0, 0, 0), ("a", 2.0, 0, 1), ("b", 1.0, 0, 2)]),
        (4, [("b", 2.0, 0, 3)]),
        (5, [("a", 1.0, 0, 4)]),  # what it had is over
        (20, []),
    ]
    found = [*given_by(asked(2, "row_number", lives=LIVES), steps)]
    told = [[(c["k"], c["row_number"], c["seq"], c["change"]) for c in each] for each in found]
    assert told[2] == [("a", 2, 1, "delete"), ("a", 1, 4, "update_after")]
    assert sorted(told[3]) == [
        *[("a", 1, 4, "delete"), ("b", 1, 3, "delete"), ("b", 2, 2, "delete")],
    ]


def test_what_is_written_grows_with_the_keys_that_have_rows() -> None:
    """Not with those that there are, nor with the rows that are not among the first."""
    planned, store = asked(3, None), Counting()
    shard = Shard(planned, store)
    many = [(f"k{i % 20_000}", float(i), 0, i) for i in range(100_000)]
    touched, changes = [], []
    for rows in (many, [("k7", 1e9, 0, 100_000)], [("k7", -1.0, 0, 100_001)] * 1_000):
        store.counts.clear()
        changes.append(shard.micro_batch(None, taken(planned, rows)))
        touched.append(store.counts["bytes_read"] + store.counts["bytes_written"])
    assert changes == [60_000, 2, 0]
    assert touched[0] > 500_000
    assert max(touched[1:]) < touched[0] / 50


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"count": 0}, "at least 1"),
        ({"by": []}, "at least one column"),
        ({"by": "nothing"}, "nothing"),
        ({"by": "list"}, "ordered by numbers"),
        ({"number": ""}, "number, if it is not None, is the name"),
        ({"change": None}, "change is the name"),
        ({"change": "v"}, "different names"),
        ({"change": "k"}, "different names"),
        ({"time_to_live": "0 s"}, "live for some time"),
        ({"time_to_live": "-1 s"}, "live for some time"),
        ({"descending": [True, False]}, "one for each of 1 columns"),
        ({"shard": 5}, "options are"),
        ({"arrival_order": "v"}, "sequence"),
        ({"columns": "v"}, "sequence"),
        ({"partials": "spark"}, "partials='spark' is not possible"),
        ({"engine": "reference"}, "engine='reference' is not possible"),
        ({"device": "cuda"}, "device='cuda' is not possible"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, Any], rule: str) -> None:
    table = SCHEMA.append(pa.field("list", pa.list_(pa.int64()))).empty_table()
    said = {"count": 1, "by": "v", **changed}
    with pytest.raises(gw.errors.GpuWindowsError, match=rule):
        gw.stream(table).key_by("k").top(said.pop("count"), said.pop("by"), **said)


def test_an_input_that_ends_has_no_changes() -> None:
    rows = [row for _, rows in drawn(5, 40) for row in rows]
    table = table_of(rows)
    for batch_rows in (1, 7, 1 << 17):
        keyed = gw.stream(table).key_by("k")
        got = keyed.top(
            3, ["v", "w"], descending=[True, False], columns=["seq", "v"], batch_rows=batch_rows
        )
        assert {*got["change"].to_pylist()} == {"insert"}
        changed: dict[Any, Any] = {}
        fold(changed, got.to_pylist(), numbered=True)
        assert changed == shown(Plain(3).step((0, rows)), numbered=True)
    assert len(gw.stream(table.slice(0, 0)).key_by("k").top(3, "v")) == 0


def test_rows_are_ranked_a_few_times_all_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the calls are; each is of two thousand rows of keys of their own here."""
    ranked: list[int] = []
    rank = first_rows

    def counted(count: int, by: Any, codes: Any) -> Any:
        ranked.append(len(codes))
        return rank(count, by, codes)

    monkeypatch.setattr(top_rows, "first_rows", counted)
    table = table_of([(f"k{i}", float(i), 0, i) for i in range(50_000)])
    reader = pa.RecordBatchReader.from_batches(SCHEMA, table.to_batches(1_000))
    got = gw.stream(reader).key_by("k").top(1, "v", batch_rows=125, threads=1)
    assert len(got) == 50_000
    assert len(ranked) > 25
    assert sum(ranked) < 5 * 50_000


def test_options_are_told() -> None:
    planned = asked(2, None, lives=LIVES)
    assert planned.query.describe()["top"] == (
        "the first 2 rows of a key by v descending, w, forgotten after 5 us without rows"
    )
    assert planned.query.options == Options()
    assert "no kernel of a device runs it" in explain(planned)
