"""The event time of rows, and the column that carries their watermarks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyarrow import types

from gpu_windows.column_types.local_times import check_zone
from gpu_windows.column_types.uses import name_of
from gpu_windows.errors import ColumnTypeError, QueryError
from gpu_windows.planning.own_columns import CARRIER
from gpu_windows.runners.outputs import Source
from gpu_windows.vocabulary.watermarks import WatermarkStrategy

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


def with_time(
    source: Source, column: str | Column, watermarks: WatermarkStrategy, time_zone: str | None
) -> tuple[Source, str, WatermarkStrategy]:
    """Return rows with an event time, its name, and the watermarks.

    For parameters and errors see `gpu_windows.datastream.stream.Stream.event_time`.
    """
    if not isinstance(watermarks, WatermarkStrategy):
        rule = (
            "event_time takes a WatermarkStrategy, such as "
            "gw.WatermarkStrategy.for_bounded_out_of_orderness('5 seconds')"
        )
        raise QueryError(rule, value=repr(watermarks))
    source, name = source.bind_column(column, "__event_time")
    if time_zone is not None:
        source = source.convert_local_time(name, check_zone(time_zone))
    source = source.convert_time(name, "event time")
    if has_no_zone(source, name) and (watermarks.is_guarded or watermarks.closes):
        rule = (
            "a clock is compared with instants: name the zone of these times, as "
            "event_time(..., time_zone='Europe/Zurich')"
        )
        raise ColumnTypeError(rule, value="TIMESTAMP_NTZ", column=name)
    if watermarks.column is not None:
        source, carrier = source.bind_column(watermarks.column, "watermark")
        if time_zone is not None and has_no_zone(source, carrier):
            source = source.convert_local_time(carrier, time_zone)
        source = source.convert_time(carrier, CARRIER)
        _check_carrier(source, name, carrier)
        watermarks = replace(watermarks, column=carrier)
    return source, name, watermarks


def _check_carrier(source: Source, time: str, carrier: str) -> None:
    """Refuse watermarks that are instants where event times are not, and the other way round."""
    if has_no_zone(source, time) == has_no_zone(source, carrier):
        return
    of_time, of_carrier = (source.schema.field(each).type for each in (time, carrier))
    rule = (
        f"event times are {name_of(of_time)}: watermarks are compared with them, and are times "
        "with or without a zone as they are"
    )
    raise ColumnTypeError(rule, value=name_of(of_carrier), column=carrier)


def has_no_zone(source: Source, column: str) -> bool:
    """Whether a column has times without a zone."""
    dtype = source.schema.field(column).type
    return bool(types.is_timestamp(dtype) and dtype.tz is None)
