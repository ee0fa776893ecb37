"""Outcomes of texts here: right, refused, wrong, or an internal error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gpu_windows as gw
from gpu_windows.errors import GpuWindowsError
from tests.sql.corpus.compare import difference
from tests.sql.corpus.ddl import Table
from tests.sql.corpus.inputs import arrow_table
from tests.sql.corpus.record import checksum, recorded, rows_of
from tests.sql.corpus.texts import Text

RIGHT, REFUSED, WRONG, INTERNAL, INVALID = "right", "refused", "wrong", "internal", "invalid"
#: Of a text that reads no stream.
NOT_STREAMING = "not streaming"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a text.

    Parameters
    ----------
    text : Text
    result : str
        ``right``, ``refused`` by a typed error, ``wrong``, ``internal`` error; ``invalid``
        if Flink refuses the text: then it must not be answered, and is not counted.
    detail : str
        The difference, or the error.
    ran : bool
        Whether a result was computed.
    """

    text: Text
    result: str
    detail: str = ""
    ran: bool = True


def statement_outcome(text: Text, zone: str | None = "UTC") -> Outcome:
    """Return the outcome of a statement; its TIMESTAMP(3) are instants of a zone, if given."""
    answer = answer_of(text)
    streams = statement_streams(text, zone)
    try:
        result = gw.sql(text.sql, **streams).result()
    except GpuWindowsError as error:
        return refused(text, answer, error)
    except Exception as error:  # noqa: BLE001 - any other is a finding
        return Outcome(text, INTERNAL, f"{type(error).__name__}: {error}", ran=False)
    return compare(text, answer, {"SELECT 1": result})


def script_outcome(text: Text) -> Outcome:
    """Return the outcome of a script, whose tables are given by name."""
    answer = answer_of(text)
    try:
        results = gw.sql_script(text.sql, **script_streams(text)).results()
    except GpuWindowsError as error:
        return refused(text, answer, error)
    except Exception as error:  # noqa: BLE001 - any other is a finding
        return Outcome(text, INTERNAL, f"{type(error).__name__}: {error}", ran=False)
    return compare(text, answer, results)


def compare(text: Text, answer: Mapping[str, Any], results: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a text with results, which are tables of Arrow by target."""
    if "error" in answer:
        return Outcome(text, INVALID, "runs here, Flink: " + answer["error"])
    flink = dict(answer)
    if text.kind == "scripts":
        flink = {name.replace("SELECT 1", "result"): each for name, each in answer.items()}
    if results.keys() != flink.keys():
        return Outcome(text, WRONG, f"results {[*results]}, Flink: {[*flink]}")
    found = {name: difference(results[name], flink[name], text.differs) for name in flink}
    wrong = [f"{name}: {each}" for name, each in found.items() if each is not None]
    return Outcome(text, WRONG, "; ".join(wrong)) if wrong else Outcome(text, RIGHT)


def script_streams(text: Text) -> dict[str, Any]:
    """Return the tables of a script, which gives them their event times."""
    rows = rows_of(text)
    return {table.name: gw.stream(arrow_table(table, rows[table.name])) for table in text.tables}


def outcome(text: Text) -> Outcome:
    """Return the outcome of a statement or a script."""
    return script_outcome(text) if text.kind == "scripts" else statement_outcome(text)


def answer_of(text: Text) -> dict[str, Any]:
    """Return the recorded answer to a text: results by target, or the error.

    Raises
    ------
    ValueError
        If the text or its rows have changed since.
    """
    answer = dict(recorded(text.kind)[text.name])
    if answer.pop("asked") != checksum(text):
        raise ValueError(f"{text.name} has changed: python -m tests.sql.corpus record")
    return answer


def refused(text: Text, answer: Mapping[str, Any], error: GpuWindowsError) -> Outcome:
    """Return the outcome of a text that is refused here."""
    result = INVALID if "error" in answer else REFUSED
    lines = f"{type(error).__name__}: {error}".splitlines()
    return Outcome(text, result, " ".join(line.strip() for line in lines), ran=False)


def statement_streams(text: Text, zone: str | None = "UTC") -> dict[str, Any]:
    """Return the tables of a statement, with their event times."""
    rows = rows_of(text)
    return {table.name: timed_stream(table, rows[table.name], zone) for table in text.tables}


def timed_stream(table: Table, rows: list[dict[str, Any]], zone: str | None) -> Any:
    """Return rows as a stream, with the event time of the table if it has one."""
    given = gw.stream(arrow_table(table, rows, zone=zone))
    if table.time is None:
        return given
    delay = gw.WatermarkStrategy.for_bounded_out_of_orderness(f"{table.delay_ms} ms")
    return given.event_time(table.time, delay)
