"""What new users write by mistake is answered by the rule, the value and what to write instead."""

from __future__ import annotations

import pickle
from inspect import isfunction
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.vocabulary.options import ticks

ROWS = pa.table(
    {"ts": pa.array([1, 2], pa.timestamp("us", "UTC")), "origin": ["a", "b"], "delay": [3, 4]}
)
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
BEGUN: Any = gw.stream(ROWS)
TIMED: Any = BEGUN.event_time("ts", WATERMARKS)
WINDOWED: Any = TIMED.key_by("origin").window(gw.TumblingEventTimeWindows.of("10 minutes"))
GW: Any = gw
READ: Any = gw.read_output
WRITE: Any = gw.write_stream


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda _: GW.TumblingEventTimeWindows.of("1 h", startTime="1 min"),
            r"^TumblingEventTimeWindows\.of takes no startTime: say offset; it takes size, offset, "
            "got startTime='1 min'$",
        ),
        (lambda _: GW.EventTimeSessionWindows.with_gap(gapDuration="1 s"), "gapDuration: say gap;"),
        (
            lambda _: GW.CountTrigger.of(number=1),
            r"CountTrigger\.of takes no number; it takes",
        ),
        (lambda _: GW.TimeEvictor.of(siz="1 s"), r"no siz: did you mean size; it takes size, "),
        (
            lambda _: GW.WatermarkStrategy.for_bounded_out_of_orderness(bund="1 s"),
            r"WatermarkStrategy\.for_bounded_out_of_orderness takes no bund: did you mean bound",
        ),
        (lambda _: GW.count(colum="delay"), "^count takes no colum: did you mean column; it takes"),
        (
            lambda _: GW.sum("delay", by="origin"),
            "^sum takes no by; it takes column, got",
        ),
        (lambda _: GW.stream(data=ROWS), "^stream takes no data; it takes source, name, got data="),
        (lambda _: BEGUN.event_time("ts", watermark=1), "no watermark: did you mean watermarks; "),
        (lambda w: w.keyed.interval_join(w.keyed, how="left"), r"takes it, select\(\.\.\., how="),
        (lambda w: w.process(lambda *_: [], [], outptu="n INT"), "no outptu: did you mean output"),
        (lambda _: WRITE("outputs", "path", checkpointLocation="c"), "say checkpoint; it takes"),
        (
            lambda _: WRITE("outputs", "path", "c", availableNow=True),
            r"say trigger=\{'availableNow': \.\.\.\}; .*, got availableNow=True$",
        ),
        (lambda _: WRITE("outputs", "path", "c", outputMode="update"), "results are appended"),
    ],
)
def test_arguments_that_a_call_does_not_take(make: Any, text: str) -> None:
    with pytest.raises(errors.UnknownArgumentError, match=text) as raised:
        make(WINDOWED)
    assert isinstance(raised.value, TypeError)


def test_checked_functions_are_pickled_by_their_names() -> None:
    functions = [each for each in (getattr(gw, name) for name in gw.__all__) if isfunction(each)]
    assert len(functions) > 20
    for function in functions:
        assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301 - our own bytes


def test_methods_of_users_parts_are_called_as_they_are() -> None:
    """They may be called for each row."""

    class Mine(gw.CountTrigger):
        @classmethod
        def make(cls, count: int) -> Mine:
            return cls(count)

    assert not hasattr(Mine.make, "__wrapped__")
    assert not hasattr(gw.CountTrigger.on_element, "__wrapped__")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda w: w.aggregate(n=gw.sum),
            r"call the function, as in n=gw.sum\(\.\.\.\), got gw.sum",
        ),
        (lambda w: w.aggregate(gw.sum("delay")), r"named, such as .*, got sum\(delay\)"),
        (lambda w: w.aggregate({"delay": "sum"}), r"named, such as .*, got \{'delay': 'sum'\}"),
        (lambda w: w.aggregate(n=sum), "of gpu_windows, such as n=gw.sum"),
        (lambda w: w.keyed.window("1 minute"), r"TumblingEventTimeWindows\.of.*, got '1 minute'"),
        (lambda w: w.trigger("1 minute"), r"such as gw\.CountTrigger.*, got '1 minute'"),
        (lambda w: w.evictor(3), r"such as gw\.CountEvictor.*, got 3"),
        (lambda _: TIMED.key_by(["origin"]), r"one by one: .*, got \['origin'\]"),
        (lambda _: TIMED.key_by(lambda row: row), r"with_columns\(key='...'\) makes one"),
        (lambda _: BEGUN.event_time("ts"), r"event_time\('ts', gw\.WatermarkStrategy\.for_bounded"),
        (lambda _: BEGUN.event_time(watermarks=WATERMARKS), "takes a column and watermarks"),
        (lambda _: WRITE("outputs", "path"), "name the folder of the checkpoint"),
        (lambda w: w.keyed.interval_join(w.keyed).between("1 s"), "between takes upper, which is"),
        (
            lambda _: gw.stream(pd.DataFrame({"k": [1, "2"]})),
            r"values of one type: convert it first.*\(column 'k'\)",
        ),
        (
            lambda _: gw.stream(pd.DataFrame([[1, 2]], columns=["k", "k"])),
            "several columns of one name",
        ),
        (lambda _: WRITE("outputs", checkpoint="path"), "name a sink"),
        (
            lambda _: gw.ParquetSink("jdbc:postgresql://u:secret@h/d"),
            r"say gw\.PostgresSink\('table'.*, got jdbc:postgresql:\.\.\.$",
        ),
        (lambda _: gw.ParquetSink("postgres://u:secret@h/d"), r"got postgres://\.\.\.$"),
        (lambda _: gw.ParquetSink("jdbc:mysql://h/d"), "write a function or a Sink"),
        (lambda _: TIMED.union(ROWS), "union takes streams with a time.*, got Table"),
        (lambda _: BEGUN.event_time("ts", "5 s"), "for_bounded.*, got '5 s'"),
        (lambda _: gw.stream([{"a": 1}]), r"Table\.from_pylist\(rows\) makes one, got list"),
        (lambda _: gw.stream({"a": [1]}), r"pyarrow\.table\(columns\) makes one, got dict"),
        (lambda _: gw.stream("a.parquet"), r"spark\.read or .* makes one, got str"),
        (lambda _: READ("path", "late"), r"gw\.read_output\(spark, path\), got 'path'"),
    ],
)
def test_what_new_users_write_is_told_what_to_write(make: Any, text: str) -> None:
    with pytest.raises(errors.QueryError, match=text):
        make(WINDOWED)


@pytest.mark.parametrize("text", ["1 month", "1 mon", "2 mons", "1 qtr"])
def test_months_are_told_to_be_of_the_calendar(text: str) -> None:
    with pytest.raises(
        errors.InvalidDurationError,
        match=f"no fixed length: write days, or CalendarWindows, got '{text}'",
    ):
        ticks(text)


def test_units_that_are_none_are_told_what_to_say() -> None:
    with pytest.raises(errors.InvalidDurationError, match="write min, got '5m'"):
        ticks("5m")


def test_errors_are_looked_for_in_their_module() -> None:
    with pytest.raises(AttributeError, match=r"'QueryError': errors are in gpu_windows\.errors"):
        _ = gw.QueryError  # type: ignore[attr-defined]


class Undeclared(gw.functions.AggregateFunction):
    """A sum without the types of its accumulator and result."""

    def create_accumulator(self) -> int:
        """Return zero."""
        return 0

    def add(self, row: Any, accumulator: int) -> int:
        """Add a value."""
        return accumulator + int(row["v"])

    def get_result(self, accumulator: int) -> int:
        """Return the sum."""
        return accumulator


def test_an_aggregate_of_your_own_declares_its_types() -> None:
    rule = r"Undeclared.accumulator is an Arrow type, such as pa.int64\(\), got nothing"
    with pytest.raises(errors.InvalidFunctionError, match=rule):
        gw.user_aggregate(Undeclared(), "v")
    with pytest.raises(errors.InvalidFunctionError, match=rule):
        gw.functions.AggregatingStateDescriptor(Undeclared()).check("total", "Sums")
    with pytest.raises(
        errors.InvalidFunctionError, match=r"an AggregateFunction: write Undeclared\(\)"
    ):
        gw.user_aggregate(Undeclared, "v")  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidFunctionError, match="takes an AggregateFunction, got"):
        gw.user_aggregate(len, "v")  # type: ignore[arg-type]


def test_a_duration_of_pandas_has_whole_microseconds() -> None:
    minute = gw.TumblingEventTimeWindows.of("1 minute")
    assert gw.TumblingEventTimeWindows.of(pd.Timedelta(60, "s")) == minute
    with pytest.raises(errors.InvalidDurationError, match="a whole number of microseconds"):
        gw.TumblingEventTimeWindows.of(pd.Timedelta(1_500, "ns"))
