"""Streams that are given by name, as tables of a statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpu_windows.datastream.stream import Stream
from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.errors import QueryError
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.tables.inputs import Input


def tables_by_name(streams: Mapping[str, Any]) -> dict[str, Input]:
    """Return streams as tables, by name in lower case; without an event time, of `NO_TIME`.

    Raises
    ------
    QueryError
        If one is not a stream, or two names differ in case alone.
    """
    tables: dict[str, Input] = {}
    for name, stream in streams.items():
        if isinstance(stream, Stream):
            stream = stream._without_time
        if not isinstance(stream, TimedStream):
            rule = f"{name} must be a stream with an event time: gw.stream(table).event_time(...)"
            raise QueryError(rule, value=type(stream).__name__)
        if name.lower() in tables:
            raise QueryError("names of tables must differ in more than case", value=name)
        table = replace(stream, source=stream.source.with_input_name(name))
        tables[name.lower()] = Input(name, ApiCall(table, name))
    return tables
