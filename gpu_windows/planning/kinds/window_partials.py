"""Which partials a query over windows needs, and who makes them."""

from __future__ import annotations

from gpu_windows.aggregates.argument_types import is_ordered
from gpu_windows.aggregates.partials import ROWS, Combine, Lift, Partial
from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.execution import SLOW_CROSSING, Execution
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import PartialsBy
from gpu_windows.rules import Grid


def find_partials(query: WindowQuery) -> tuple[Partial, ...]:
    """Return the distinct partials of a query, `ROWS` first."""
    return tuple(dict.fromkeys([ROWS, *query.function.partials]))


def choose_partials_by(
    query: WindowQuery, partials: tuple[Partial, ...], grid: Grid, execution: Execution
) -> tuple[PartialsBy, str]:
    """Return who makes the partials of slices on Spark batch, and the reason."""
    not_spark = _why_not_spark(query, partials)
    asked = query.options.partials
    if asked == "kernels":
        return PartialsBy.KERNELS, "partials by our kernels: asked for"
    if not_spark is not None:
        if asked == "spark":
            raise UnsupportedQueryError(f"partials='spark' is not possible: {not_spark}")
        return PartialsBy.KERNELS, f"partials by our kernels: {not_spark}"
    if asked == "spark":
        return PartialsBy.SPARK, "partials by Spark's own aggregation: asked for"
    if execution.reads_in_task:
        return PartialsBy.KERNELS, "partials by our kernels, where the rows are read"
    if finishes_in_spark(query, grid):
        reason = "a slice is a window, so nothing crosses to Python"
    elif execution.crosses_quickly:
        return PartialsBy.KERNELS, "partials by our kernels: rows cross quickly"
    else:
        reason = f"{SLOW_CROSSING}, so only partials cross"
    return PartialsBy.SPARK, f"partials by Spark's own aggregation: {reason}"


def finishes_in_spark(query: WindowQuery, grid: Grid) -> bool:
    """Whether a query whose partials Spark makes needs no operator: it finds no days' ticks."""
    is_plain = query.grouping is None and query.gaps is None
    return grid.span == 1 and is_plain and query.units.length == 1


def _why_not_spark(query: WindowQuery, partials: tuple[Partial, ...]) -> str | None:
    """Return why Spark's own aggregation cannot make these partials, or None."""
    if query.options.device == "cuda":
        return "device='cuda' was asked for"
    for partial in partials:
        if partial.combine is Combine.PICK and partial.by == partial.column:
            return f"column {partial.column!r} is {query.schema.field(str(partial.column)).type}"
        if partial.combine is Combine.PICK:
            return "first, last, arg_min and arg_max pick rows in order of arrival"
        if partial.combine is Combine.MOMENTS:
            return "Spark's variance loses the digits that values have in common"
        if partial.combine.is_sketch:
            return "the DataSketches library makes sketches"
        if partial.column is not None and partial.lift is not Lift.ONE:
            dtype = query.schema.field(partial.column).type
            if not is_ordered(dtype) or str(dtype).startswith("decimal"):
                return f"column {partial.column!r} is {dtype}"
    return None
