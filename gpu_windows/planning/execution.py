"""Where and how a query is to be executed, and the options that rules out."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.query import Query

#: Reason of a plan whose rows cross to Python.
SLOW_CROSSING = (
    "rows cross to Python slowly with these settings of Spark, see gpu_windows.configure"
)
#: Reason of a plan whose query asks for the reference engine.
REFERENCE = "row at a time, in Python: the reference engine was asked for"


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Where and how a query is to be executed. Parameters: see `gpu_windows.planning.planner`."""

    bounded: bool
    spark: bool
    crosses_quickly: bool
    reads_in_task: bool

    @property
    def is_spark_stream(self) -> bool:
        """Whether it is a stream in Spark."""
        return self.spark and not self.bounded


def check_partials_option(query: Query, why: str, execution: Execution) -> None:
    """Refuse Spark's partials for a strategy without slices; ``why``: the reason for it."""
    if execution.spark and query.options.partials == "spark":
        rule = f"partials='spark' is not possible, it needs windows of slices: {why}"
        raise UnsupportedQueryError(rule)


def check_no_reference(query: Query, subject: str) -> None:
    """Refuse the reference engine for a kind of query that it does not evaluate.

    ``subject``: what to call that kind in the message.
    """
    if query.options.engine == "reference":
        rule = (
            f"engine='reference' is not possible: the reference engine does not evaluate {subject}"
        )
        raise UnsupportedQueryError(rule)


def check_options(query: Query, subject: str) -> None:
    """Refuse options about devices and partials for a kind of query that uses neither.

    ``subject``: what to call that kind in the message.
    """
    options = query.options
    refused = {
        "device": (options.device == "cuda", "no kernel of a device runs"),
        "partials": (options.partials == "spark", "no partials are made for"),
    }
    for name, (is_refused, why) in refused.items():
        if is_refused:
            rule = f"{name}={getattr(options, name)!r} is not possible: {why} {subject}"
            raise UnsupportedQueryError(rule)


def check_watermarks_move(query: Query, consequence: str, execution: Execution) -> None:
    """Refuse a stream without watermarks where results wait for them."""
    if execution.is_spark_stream and not query.watermarks.moves:
        rule = f"without watermarks {consequence}"
        raise UnsupportedQueryError(rule, value=query.watermarks.describe())
