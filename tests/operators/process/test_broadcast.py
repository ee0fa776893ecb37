"""Broadcast state: what both sides see, what comes of it, what is kept, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError, InvalidFunctionError, QueryError
from gpu_windows.functions.two_inputs import COPY, SIDE, TIME
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.process.broadcast_state import BROADCAST
from gpu_windows.planning.plan import ARRIVAL, Plan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.tasks.packing import assign_shards, shards_of
from tests.examples import examples
from tests.operators.process.functions import LONG, TEXT, Limits, Row, table
from tests.operators.state.counting import Counting
from tests.operators.state.put_away import Named, call, put_away_after_each

WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()


def rules(*rows: tuple[str, int | None, int | None]) -> pa.Table:
    schema = pa.schema([("name", TEXT), ("at", LONG), ("limit", LONG)])
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=schema)


def outputs(
    function: Any, keyed: pa.Table, broadcast: pa.Table, **options: Any
) -> gw.typing.Outputs:
    rows = gw.stream(keyed).event_time("ts", WATERMARKS).key_by("k")
    small = gw.stream(broadcast).event_time("at", WATERMARKS).broadcast()
    return (
        rows.connect(small)
        .with_outputs()
        .process(function, ["v"], ["name", "limit"], output=function.output, **options)
    )


def planned() -> Plan:
    return plan(outputs(Limits(), table(), rules()).plan.query, bounded=False)


def keyed_rows(*rows: tuple[str | None, int | None, int | None]) -> pa.Table:
    """Return rows of the keyed side, as operators take them."""
    return _of_both([{SIDE: True, "k": k, TIME: at, "__keyed_v": v} for k, at, v in rows])


def broadcast_rows(*rows: tuple[str, int | None, int | None]) -> pa.Table:
    """Return rows of the broadcast side."""
    names = (SIDE, TIME, "__broadcast_name", "__broadcast_limit")
    return _of_both([dict(zip(names, (False, at, n, limit), strict=True)) for n, at, limit in rows])


def _of_both(rows: list[dict[str, Any]]) -> pa.Table:
    made = planned()
    fields = [made.query.schema.field(name) for name in made.input_columns]
    return pa.Table.from_pylist([{COPY: False, **row} for row in rows], schema=pa.schema(fields))


def test_broadcast_rows_come_first_on_bounded_input() -> None:
    """Their results come once and have no key; both sides and timers have side outputs."""
    keyed = table(("a", 1, 3), ("b", 2, 9), ("a", 3, 12))
    found = outputs(Limits(), keyed, rules(("x", 9, 8), ("y", 10, 20)))
    limits = ["{'x': 8}", "{'x': 8, 'y': 20}"]
    assert [(row["k"], *[*row.values()][1:]) for row in found.result().to_pylist()] == [
        (None, "limit", 8, limits[0]),
        (None, "limit", 20, limits[1]),
        ("a", "row", 3, limits[1]),
        ("b", "row", 9, limits[1]),
        ("a", "row", 12, limits[1]),
        ("b", "timer", 9, "{8: 1, 20: 1} 7"),
        ("a", "timer", 12, "{8: 1, 20: 1} 8"),
    ]
    told = [(row["k"], row["v"]) for row in found.side("told").to_pylist()]
    assert told == [(None, 8), (None, 20), ("b", 9), ("a", 12)]
    metrics = found.metrics().to_pylist()[0]
    assert (metrics["rows"], dict(metrics["user"])) == (5, {"broadcast rows": 2})


def test_a_row_without_a_time_is_given_back() -> None:
    found = outputs(Limits(), table(("a", None, 3)), rules(("x", None, 8), ("y", 1, 9)))
    assert found.result()["what"].to_pylist() == ["limit"]
    given = found.rejected()
    assert given["rejection_reason"].to_pylist() == ["null_timestamp"] * 2
    assert COPY not in given.column_names


def test_explain() -> None:
    text = outputs(Limits(), table(), rules()).explain()
    assert "Limits(v), broadcast: name, limit; broadcast state: limits, seen" in text
    assert "go to all shards" in text


TIMES = st.integers(-20, 60)


@st.composite
def steps(draw: st.DrawFn) -> list[Named]:
    """Rows of either side and watermarks."""
    found: list[Named] = []
    watermark = -30
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("keyed", "keyed", "broadcast", "both", "watermark")))
        if kind == "watermark":
            watermark += draw(st.integers(0, 30))
            found.append((kind, watermark))
            continue
        rows: list[pa.Table] = []
        if kind != "keyed":
            limit = st.one_of(st.none(), st.integers(0, 12))
            some = st.tuples(st.sampled_from("xyz"), TIMES, limit)
            rows.append(broadcast_rows(*draw(st.lists(some, max_size=3))))
        if kind != "broadcast":
            row = st.tuples(st.sampled_from("abc"), TIMES, st.integers(0, 12))
            rows.append(keyed_rows(*draw(st.lists(row, max_size=4))))
        found.append(("rows", pa.concat_tables(rows)))
    return [*found, ("watermark", LONG_MAX)]


@examples(120)
@given(steps())
def test_put_away_after_each_call(found: list[Named]) -> None:
    put_away_after_each(planned(), found)


def test_the_table_is_read_and_written_where_that_is_needed() -> None:
    made, store = planned(), Counting()

    def seen(*steps: Any) -> tuple[bool, bool]:
        """Return whether the table is read, and whether it is written."""
        store.reopen()
        before = store.runs(BROADCAST)
        store.forget_counts()
        call(made, store, *steps)
        has_read = store.table_ranges[BROADCAST] > 0
        store.reopen()
        return has_read, store.runs(BROADCAST) != before

    assert seen(keyed_rows(("a", 1, 1))) == (False, False)
    assert store.runs(BROADCAST) == []
    assert seen(broadcast_rows(("x", 1, 3))) == (False, True)
    assert seen(keyed_rows(("a", 2, 2))) == (True, False)
    assert seen(0) == (False, False)
    assert restore_operator(made, store).state_size()[BROADCAST] == 2
    call(made, store, broadcast_rows(("x", 1, None)))
    assert restore_operator(made, store).state_size()[BROADCAST] == 0
    assert store.runs(BROADCAST) == []


def test_a_table_that_is_lost_is_missed() -> None:
    made, store = planned(), Counting()
    call(made, store, broadcast_rows(("x", 1, 3)))
    store.reopen()
    (run,) = store.runs(BROADCAST)
    call(made, store, keyed_rows(("a", 1, 1)))
    store.reopen()
    del store.counting.files[run.file]
    with pytest.raises(gw.errors.StateCorruptedError, match=run.file):
        call(made, store, keyed_rows(("a", 2, 2)))


def test_every_shard_has_a_copy_that_gives_nothing() -> None:
    query = outputs(Limits(), table(), rules(), shards=4).plan.query
    made = plan(query, bounded=False, spark=True)
    assert made.order[0] == SIDE
    sent = broadcast_rows(("x", 1, 8), ("y", None, 20), ("z", 3, 7))
    rows, shards = assign_shards(made, pa.concat_tables([sent, keyed_rows(("a", 2, 9))]))
    home = shards_of(made, sent)[0]
    given = {}
    for shard in range(4):
        operator = build_operator(made)
        own = rows.filter(pa.array(shards == shard))
        emissions = [*operator.process(own), *operator.process(keyed_rows(("b", 4, 9)))]
        counters = sum((e.counters for e in emissions), Counters())
        given[shard] = (
            [row["what"] for e in emissions for row in e.results.to_pylist()].count("limit"),
            sum(len(e.late) for e in emissions),
            counters.rows - len(own.filter(own.column(SIDE))) - 1,
            dict(counters.user).get("broadcast rows", 0),
            {r["limits"] for e in emissions for r in e.results.to_pylist() if r["what"] == "row"},
        )
    known = {"{'x': 8, 'z': 7}"}
    assert given.pop(home) == (2, 1, 3, 2, known)
    assert list(given.values()) == [(0, 0, 0, 0, known)] * 3


# ---- what is refused


class Wrong(Limits):
    """Does on either side what a test says."""

    def __init__(self, keyed: Any = None, broadcast: Any = None) -> None:
        self._normalize_keys, self._broadcast = keyed, broadcast

    def open(self, context: gw.typing.OpenContext) -> None:
        self.above = context.state("above")

    def process_element(self, row: Row, context: Any) -> Any:
        return self._normalize_keys and self._normalize_keys(self, context)

    def process_broadcast_element(self, row: Row, context: Any) -> Any:
        context.broadcast_state("limits").put("x", 1)
        return self._broadcast and self._broadcast(self, context)


def _run(keyed: Any = None, broadcast: Any = None) -> None:
    outputs(Wrong(keyed, broadcast), table(("a", 1, 7)), rules(("x", 1, 8))).result()


ON_KEYED: list[Callable[..., Any]] = [
    lambda _, c: c.broadcast_state("limits").put("y", 1),
    lambda _, c: c.broadcast_state("limits").put_all({"y": 1}),
    lambda _, c: c.broadcast_state("limits").remove("x"),
    lambda _, c: c.broadcast_state("limits").clear(),
]
ON_BROADCAST: list[Callable[..., Any]] = [
    lambda _, c: c.state("above"),
    lambda _, c: c.key,
    lambda _, c: c.register_event_time_timer(1),
    lambda _, c: c.register_processing_time_timer(1),
    lambda _, c: c.delete_event_time_timer(1),
    lambda f, _: f.above.get(),
    lambda f, _: f.above.add(1),
    lambda f, _: f.above.clear(),
]


@pytest.mark.parametrize("does", ON_KEYED)
def test_the_keyed_side_writes_no_broadcast_state(does: Any) -> None:
    with pytest.raises(InvalidFunctionError, match=r"in process_broadcast_element alone.*k='a'"):
        _run(keyed=does)


@pytest.mark.parametrize("does", ON_BROADCAST)
def test_no_key_is_at_hand_on_the_broadcast_side(does: Any) -> None:
    with pytest.raises(InvalidFunctionError, match=r"has no current key.*at row {'name': 'x'"):
        _run(broadcast=does)


def test_other_errors_of_either_side() -> None:
    with pytest.raises(FunctionFailedError, match=r"process_broadcast_element, at row .*division"):
        _run(broadcast=lambda *_: 1 / 0)
    for side in ("keyed", "broadcast"):
        with pytest.raises(InvalidFunctionError, match=r"it declared limits, seen"):
            _run(**{side: lambda _, c: c.broadcast_state("more")})
    with pytest.raises(InvalidFunctionError, match=r"'limits' of Wrong was declared as int64"):
        _run(broadcast=lambda _, c: c.broadcast_state("limits").put("y", "z"))
    with pytest.raises(AttributeError, match="nothing"):
        Wrong().nothing  # type: ignore[attr-defined]  # noqa: B018


def test_what_is_declared_wrongly() -> None:
    wrong: list[tuple[Any, str]] = [
        ([1], r"broadcast_state maps names to state descriptors"),
        (
            {"a": gw.functions.ValueStateDescriptor(LONG)},
            "MapStateDescriptors without a time to live",
        ),
        (
            {"a": gw.functions.MapStateDescriptor(LONG, LONG, ttl=gw.functions.StateTtlConfig(1))},
            "without a time to live",
        ),
    ]
    for declared, text in wrong:
        kind = type("Declares", (Limits,), {"broadcast_state": declared})
        with pytest.raises(InvalidFunctionError, match=text):
            outputs(kind(), table(), rules())


def test_misuse_of_the_api() -> None:
    keyed = gw.stream(table()).event_time("ts", WATERMARKS).key_by("k")
    small = gw.stream(rules()).event_time("at", WATERMARKS).broadcast()
    with pytest.raises(QueryError, match="takes a KeyedBroadcastProcessFunction"):
        keyed.connect(small).process(object(), output=Limits.output)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="event time"):
        keyed.connect(gw.stream(rules()).broadcast()).process(Limits(), output=Limits.output)
    assert ARRIVAL in planned().order


def test_streams_without_a_time() -> None:
    """They are connected, too; their rows have none."""
    keyed = gw.stream(table(("a", None, 7))).key_by("k")
    both = keyed.connect(gw.stream(rules(("x", None, 6))).broadcast())

    class Asks(Limits):
        def process_element(self, row: Row, context: Any) -> Iterator[Row]:
            limits = dict(context.broadcast_state("limits").items())
            yield {"what": str(context.timestamp), "v": row["v"], "limits": str(limits)}

    found = both.process(Asks(), ["v"], ["name", "limit"], output=Asks.output)
    assert [row["what"] for row in found.to_pylist()] == ["limit", "None"]


class Keeps(gw.functions.KeyedBroadcastProcessFunction):
    """Counts limits; it asks for broadcast state once, or each time."""

    output = pa.schema([("n", LONG)])
    broadcast_state: ClassVar = {"limits": gw.functions.MapStateDescriptor(TEXT, LONG)}

    def __init__(self, *, once: bool) -> None:
        self._once = once
        self._kept: dict[str, Any] = {}

    def _limits(self, side: str, context: Any) -> Any:
        if not self._once or side not in self._kept:
            self._kept[side] = context.broadcast_state("limits")
        return self._kept[side]

    def process_broadcast_element(self, row: Row, context: Any) -> None:
        self._limits("broadcast", context).put(row["name"], row["limit"])

    def process_element(self, row: Row, context: Any) -> Iterator[Row]:
        yield {"n": len(self._limits("keyed", context).keys())}


@pytest.mark.parametrize("once", [True, False])
def test_broadcast_state_that_a_function_keeps_is_that_of_the_shard_at_hand(once: bool) -> None:
    query = outputs(Keeps(once=once), table(), rules()).plan.query
    made = plan(query, bounded=False)
    found: list[int] = []
    stores = Counting(), Counting()
    for limits, store in ((2, 0), (1, 1), (3, 0), (0, 1), (0, 0)):
        operator = restore_operator(made, stores[store])
        names = [(f"{store} {len(found)} {i}", 1, 1) for i in range(limits)]
        for rows in (broadcast_rows(*names), keyed_rows(("a", 1, 1))):
            found += [n for e in operator.process(rows) for n in e.results["n"].to_pylist()]
        operator.save()
    assert found == [2, 1, 5, 1, 5]
