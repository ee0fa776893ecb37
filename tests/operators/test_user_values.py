"""A function that goes on with what it gave, or writes into what it was given, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError, InvalidFunctionError
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.typing import TimeWindow

SECOND = 1_000_000
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
LONG, RAW = pa.int64(), pa.binary()
OUT = pa.schema([("raw", RAW), ("n", LONG)])
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
SLIDING = gw.SlidingEventTimeWindows.of("1 minute", "20 seconds")


def rows(count: int = 3) -> pa.Table:
    at = pa.array([(30 + i) * SECOND for i in range(count)]).cast(pa.timestamp("us", "UTC"))
    lists = [[i] for i in range(count)]
    return pa.table({"k": ["a"] * count, "ts": at, "v": range(count), "l": lists})


def keyed(table: pa.Table | None = None) -> gw.typing.KeyedStream:
    return gw.stream(rows() if table is None else table).event_time("ts", WATERMARKS).key_by("k")


# ---- what a function gives


class Reused(gw.functions.KeyedProcessFunction):
    """Gives one buffer again and again, and writes into it before it is asked again."""

    side_outputs: ClassVar = {"aside": pa.schema([("raw", RAW)])}
    state: ClassVar = {
        "value": gw.functions.ValueStateDescriptor(RAW),
        "list": gw.functions.ListStateDescriptor(RAW),
        "lists": gw.functions.ListStateDescriptor(pa.list_(LONG)),
        "map": gw.functions.MapStateDescriptor(pa.string(), RAW),
        "longest": gw.functions.ReducingStateDescriptor(lambda old, new: new, RAW),
    }

    def process_element(self, row: Any, context: Any) -> Iterator[Any]:
        raw, numbers = bytearray([row["v"]]), [row["v"]]
        context.output("aside", {"raw": raw})
        context.state("value").update(raw)
        context.state("list").add(raw)
        context.state("lists").add(numbers)
        context.state("map").put(f"{row['v']}", raw)
        context.state("longest").add(raw)
        yield {"raw": raw, "n": row["v"]}
        raw[0], numbers[0] = 99, 99
        if row["v"] == 2:
            given = [
                [context.state("value").value()],
                context.state("list").get(),
                [bytes(each) for each in context.state("lists").get()],
                [*context.state("map").values()],
                [context.state("longest").get()],
            ]
            yield from ({"raw": b"".join(each), "n": -1} for each in given)


def test_a_process_function_goes_on_with_what_it_gave() -> None:
    outputs = keyed().with_outputs().process(Reused(), ["v"], output=OUT)
    found = outputs.result()["raw"].to_pylist()
    every = b"\0\1\2"
    assert found[:3] == [b"\0", b"\1", b"\2"]
    assert found[3:] == [b"\2", every, every, every, b"\2"]
    assert outputs.side("aside")["raw"].to_pylist() == [b"\0", b"\1", b"\2"]


class ReusedOfWindows(gw.functions.ProcessWindowFunction):
    side_outputs: ClassVar = {"aside": pa.schema([("raw", RAW)])}
    window_state: ClassVar = {"seen": pa.list_(LONG)}

    def process(self, key: Any, context: Any, rows: Any) -> Iterator[Any]:
        raw, seen = bytearray(b"x"), [1]
        context.output("aside", {"raw": raw})
        context.window_state.put("seen", seen)
        seen.append(2)
        context.window_state.get("seen").append(3)
        for n in range(2):
            yield {"raw": raw, "n": len(context.window_state.get("seen"))}
            raw[0] = n


def test_a_window_function_goes_on_with_what_it_gave() -> None:
    outputs = keyed().window(MINUTE).with_outputs().process(ReusedOfWindows(), ["v"], output=OUT)
    assert outputs.result().select(["raw", "n"]).to_pylist() == [
        {"raw": b"x", "n": 1},
        {"raw": b"\0", "n": 1},
    ]
    assert outputs.side("aside")["raw"].to_pylist() == [b"x"]


def test_a_function_of_pairs_goes_on_with_what_it_gave() -> None:
    class Pairs(gw.functions.ProcessJoinFunction):
        buffer = bytearray(1)

        def process_element(self, left: Any, right: Any, context: Any) -> list[Any]:
            self.buffer[0] = left["v"]
            context.key["k"] = "b"
            return [{"raw": self.buffer, "n": len(context.key["k"])}]

    joined = keyed().interval_join(keyed()).between("0 s", "0 s")
    found = joined.process(Pairs(), ["v"], ["v"], output=OUT)
    assert sorted(found["raw"].to_pylist()) == [b"\0", b"\1", b"\2"]


class ReusedArrays(gw.functions.VectorProcessFunction):
    """Gives tables of one array, which it goes on with."""

    state: ClassVar = {"n": LONG}
    side_outputs: ClassVar = {"aside": pa.schema([("n", LONG)])}

    def open(self, context: Any) -> None:
        self.numbers = np.zeros(1, np.int64)

    def process_batch(self, batch: Any) -> Any:
        before = batch.state["n"].to_pylist()[0]
        self.numbers[0] = len(batch.rows) if before is None else before + len(batch.rows)
        table = pa.table({"n": self.numbers})
        places = np.zeros(1, np.int64)
        timers = places, self.numbers.copy()
        found = gw.functions.VectorResult(
            rows=(table, places), state=table, sides={"aside": table}, event_timers=timers
        )
        self.after = (self.numbers, places, *timers)
        return found

    def on_timers(self, batch: Any) -> Any:
        return gw.functions.VectorResult(rows=(pa.table({"n": batch.times}), batch.places))


@pytest.mark.parametrize("put_away", [False, True])
def test_a_function_of_many_keys_goes_on_with_its_arrays(put_away: bool) -> None:
    function = ReusedArrays()
    made = (
        keyed().with_outputs().process(function, ["v"], output=pa.schema([("n", LONG)])).plan.query
    )
    planned, store = plan(made, bounded=False), MemoryLog()
    operator: Any = build_operator(planned)
    if put_away:
        operator = restore_operator(planned, store)
    found, aside = [], []
    batch = rows(2).set_column(1, "ts", pa.array([1, 2]))
    for _ in range(3):
        emissions = [*operator.process(batch)]
        for array in operator._process.function.after:
            array[:] = 77
        found += [n for each in emissions for n in each.results["n"].to_pylist()]
        aside += [n for e in emissions if e.sides for n in e.sides["aside"]["n"].to_pylist()]
        if put_away:
            operator.save()
            operator = restore_operator(planned, store)
    assert found == aside == [2, 4, 6]
    timers = [n for e in operator.advance_watermark(LONG_MAX) for n in e.results["n"].to_pylist()]
    assert timers == [2, 4, 6]
    operator.close()


class Shared(gw.functions.AggregateFunction):
    """Begins with a list that all windows share, and writes into what it is given."""

    accumulator, result = pa.list_(LONG), RAW
    nothing: ClassVar[list[int]] = []
    buffer: ClassVar[bytearray] = bytearray()

    def create_accumulator(self) -> Any:
        return self.nothing

    def add(self, row: Any, accumulator: Any) -> Any:
        row["l"].append(50)
        accumulator += row["l"]
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        self.buffer[:] = bytes(accumulator)
        return self.buffer


def test_windows_share_neither_accumulators_nor_rows() -> None:
    windowed = keyed().window(SLIDING)
    found = windowed.aggregate(raw=gw.user_aggregate(Shared(), "l"))["raw"].to_pylist()
    assert found == [bytes([0, 50, 1, 50, 2, 50])] * 3
    assert Shared.nothing == []


def test_a_result_leaves_the_accumulator_of_a_window_as_it_is() -> None:
    class Counted(gw.functions.AggregateFunction):
        accumulator, result = pa.list_(LONG), LONG

        def create_accumulator(self) -> Any:
            return []

        def add(self, row: Any, accumulator: Any) -> Any:
            return [*accumulator, row["v"]]

        def get_result(self, accumulator: Any) -> Any:
            count = len(accumulator)
            accumulator.clear()
            return count

    windows = gw.TumblingEventTimeWindows.of("1 hour")
    every = keyed().window(windows).trigger(gw.CountTrigger.of(1))
    found = every.aggregate(n=gw.user_aggregate(Counted(), "v"))
    assert found["n"].to_pylist() == [1, 2, 3]


def test_a_reduce_function_writes_into_its_rows() -> None:
    def reduce(left: Any, right: Any) -> Any:
        left["l"] += right["l"]
        right["l"].append(-1)
        return left

    found = keyed().window(SLIDING).reduce(reduce, ["l"])
    assert found["l"].to_pylist() == [[0, 1, 2]] * 3


class Writes(gw.functions.Trigger):
    columns = ("l",)
    state: ClassVar = {"seen": pa.list_(LONG)}

    def on_element(self, row: Any, timestamp: int, window: Any, context: Any) -> Any:
        row["l"].append(9)
        row["other"] = 1
        seen = context.get("seen", [])
        seen.append(len(row["l"]))
        context.get("seen", []).append(5)
        context.put("seen", seen)
        return (
            gw.functions.TriggerResult.FIRE
            if len(seen) == 3
            else gw.functions.TriggerResult.CONTINUE
        )

    def on_event_time(self, time: int, window: Any, context: Any) -> Any:
        return gw.functions.TriggerResult.CONTINUE

    on_processing_time = on_event_time

    def clear(self, window: Any, context: Any) -> None:
        context.remove("seen")


class Evicts(gw.functions.Evictor):
    columns = ("l",)

    def evict_before(self, elements: Any, window: Any, context: Any) -> Any:
        for each in elements:
            each.row["l"].clear()
        found = [*elements]
        elements.clear()
        return found


class Assigns(gw.functions.WindowAssigner):
    columns = ("l",)

    def assign_windows(self, row: Any, timestamp: int, context: Any) -> Any:
        row["l"] *= 2
        return [TimeWindow(0, 60 * SECOND), TimeWindow(0, 90 * SECOND)]


def test_parts_of_windows_write_into_their_rows() -> None:
    windowed = keyed().window(Assigns()).trigger(Writes()).evictor(Evicts())
    found = windowed.aggregate(lists=gw.collect_list("l"), n=gw.count())
    assert found["n"].to_pylist() == [3, 3]
    assert found["lists"].to_pylist() == [[[0], [1], [2]]] * 2


def test_rows_without_columns_are_nobody_elses() -> None:
    class Marks(gw.functions.KeyedProcessFunction):
        def process_element(self, row: Any, context: Any) -> list[Any]:
            row["n"] = row.get("n", 0) + 1
            return [{"n": row["n"]}]

    found = keyed().process(Marks(), [], output=pa.schema([("n", LONG)]))
    assert found["n"].to_pylist() == [1, 1, 1]


def test_a_result_leaves_the_accumulator_of_state_as_it_is() -> None:
    class Greatest(gw.functions.AggregateFunction):
        accumulator, result = pa.list_(LONG), LONG

        def create_accumulator(self) -> Any:
            return []

        def add(self, value: Any, accumulator: Any) -> Any:
            return [*accumulator, value]

        def get_result(self, accumulator: Any) -> Any:
            return accumulator.pop()

    class Asks(gw.functions.KeyedProcessFunction):
        state: ClassVar = {"all": gw.functions.AggregatingStateDescriptor(Greatest())}

        def process_element(self, row: Any, context: Any) -> list[Any]:
            every = context.state("all")
            every.add(row["v"])
            return [{"n": every.get() + every.get()}]

    found = keyed().process(Asks(), ["v"], output=pa.schema([("n", LONG)]))
    assert found["n"].to_pylist() == [0, 2, 4]


# ---- what a function is given


def writes_into(name: str) -> type[gw.functions.VectorProcessFunction]:
    class Writer(gw.functions.VectorProcessFunction):
        def process_batch(self, batch: Any) -> Any:
            if name != "times":
                getattr(batch, name)[:] = 0
            return gw.functions.VectorResult(event_timers=(np.array([0]), np.array([5])))

        def on_timers(self, batch: Any) -> Any:
            getattr(batch, name)[:] = 0

    return Writer


@pytest.mark.parametrize("name", ["timestamps", "places", "offsets", "counts", "times"])
def test_arrays_of_many_keys_are_read_only(name: str) -> None:
    outputs = (
        keyed().with_outputs().process(writes_into(name)(), ["v"], output=pa.schema([("n", LONG)]))
    )
    with pytest.raises(FunctionFailedError, match="read-only"):
        outputs.result()


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("name", ["places", "offsets"])
def test_arrays_of_many_windows_are_read_only(name: str, engine: Any) -> None:
    class Writer(gw.functions.VectorWindowFunction):
        def process(self, batch: Any) -> Any:
            getattr(batch, name)[:] = 0

    windowed = keyed().window(MINUTE).options(engine=engine)
    with pytest.raises(FunctionFailedError, match="read-only"):
        windowed.process(Writer(), ["v"], output=pa.schema([("n", LONG)]))


def test_timestamps_of_generators_are_read_only() -> None:
    at = np.arange(3)

    def generator(timestamps: Any) -> int:
        timestamps[:] = 0
        return 0

    with pytest.raises(FunctionFailedError, match=r"generator: ValueError: .*read-only"):
        gw.WatermarkStrategy.for_generator(generator).watermark_of(at)
    assert at.tolist() == [0, 1, 2]


#: Of a window, of which one is no integer.
BOUNDS: Any = (0, 1.5)


# ---- nonsense that a function gives is an error that names it


def assigned(give: Callable[[int], Any]) -> pa.Table:
    class Gives(gw.functions.WindowAssigner):
        def assign_windows(self, row: Any, timestamp: int, context: Any) -> Any:
            return give(timestamp)

    return keyed().window(Gives()).aggregate(n=gw.count())


@pytest.mark.parametrize(
    "found",
    [None, 1, [1], TimeWindow(0, 9), [TimeWindow(9, 0)], [TimeWindow(0, 2**70)],
     [TimeWindow(*BOUNDS)]],
)  # fmt: skip
def test_what_no_assigner_gives(found: Any) -> None:
    with pytest.raises(InvalidFunctionError, match=r"Gives.assign_windows must return"):
        assigned(lambda _: found)


def test_an_assigner_that_raises_is_named() -> None:
    with pytest.raises(FunctionFailedError, match=r"in Gives.assign_windows, at .*: ZeroDivision"):
        assigned(lambda at: 1 // (at - at))


@pytest.mark.parametrize("places", [[0, 0], [5], [-1]])
def test_what_no_evictor_gives(places: list[int]) -> None:
    class Gives(gw.functions.Evictor):
        def evict_before(self, elements: Any, window: Any, context: Any) -> Any:
            return [elements[0]._replace(place=place) for place in places]

    with pytest.raises(InvalidFunctionError, match="rows that it was given, each once"):
        keyed().window(MINUTE).evictor(Gives()).aggregate(n=gw.count())


@pytest.mark.parametrize("time", [None, 1.5, "x", True, 2**70])
def test_what_no_timer_of_a_trigger_is(time: Any) -> None:
    class Sets(gw.EventTimeTrigger):
        def on_element(self, row: Any, timestamp: int, window: Any, context: Any) -> Any:
            context.register_event_time_timer(time)
            return gw.functions.TriggerResult.CONTINUE

    with pytest.raises(InvalidFunctionError, match="sets timers at ticks"):
        keyed().window(MINUTE).trigger(Sets()).aggregate(n=gw.count())


@pytest.mark.parametrize("times", [[True], np.array([5], "m8[us]"), [None], [0.0], [2**63]])
def test_what_no_timers_of_many_keys_are(times: Any) -> None:
    class Sets(gw.functions.VectorProcessFunction):
        def process_batch(self, batch: Any) -> Any:
            return gw.functions.VectorResult(event_timers=(np.array([0]), times))

    with pytest.raises(InvalidFunctionError, match="their times, int64"):
        keyed().process(Sets(), ["v"], output=pa.schema([("n", LONG)]))
