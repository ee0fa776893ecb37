"""Steps of a query, which know what comes after them: ``aggregate`` is asked of a window."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from gpu_windows.arguments import check_factories
from gpu_windows.errors import MissingStepError, did_you_mean
from gpu_windows.html_text import table_html, table_text
from gpu_windows.runners.outputs import Outputs, Source
from gpu_windows.vocabulary.options import Options, change_options

_SNAKE = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: What Spark and Flink call steps, to the name that they have here.
_HABITS = {
    "agg": "aggregate",
    "groupBy": "key_by",
    "groupby": "key_by",
    "group_by": "key_by",
    "withWatermark": "event_time",
    "with_watermark": "event_time",
    "assignTimestampsAndWatermarks": "event_time",
    "apply": "process",
    "collect": "collect_lists",
    "orderBy": "arrival_order",
    "order_by": "arrival_order",
    "resample": "window_gapfill",
    "upsample": "window_gapfill",
    "fill_gaps": "window_gapfill",
    "filter": "where",
    "map": "with_columns",
    "withColumn": "with_columns",
    "with_column": "with_columns",
    "selectExpr": "select",
    "unionAll": "union",
    "assign_timestamps_and_watermarks": "event_time",
    "drop": "project",
}
#: Aggregates that are methods elsewhere, to the functions that they are here.
_AGGREGATES = {
    **{name: name for name in ("first", "last", "max", "mean", "median", "min", "sum")},
    "avg": "mean",
    "std": "stddev",
    "stddev": "stddev",
}
#: Names of Spark and Flink for calls with parameters of their own.
_CALLS = {
    "rollup": ("grouping_sets", "grouping_sets('rollup')"),
    "cube": ("grouping_sets", "grouping_sets('cube')"),
    "explain": ("with_outputs", "with_outputs(), the verb, and explain() of its outputs"),
    "flat_map": ("explode", "explode(column, name)"),
    "flatMap": ("explode", "explode(column, name)"),
    "side_output_late_data": (
        "with_outputs",
        "with_outputs(), the verb, and late() of its outputs",
    ),
    "sideOutputLateData": ("with_outputs", "with_outputs(), the verb, and late() of its outputs"),
    "count": ("aggregate", "aggregate(n=gw.count())"),
    **{
        name: ("aggregate", f"aggregate(result=gw.{function}('column'))")
        for name, function in _AGGREGATES.items()
    },
}
#: Calls on rows as they come, with where they belong: later steps lack them.
_EARLIER = {
    **dict.fromkeys(
        ("explode", "lookup", "project", "select", "union", "where", "with_columns"),
        "before keys and windows",
    ),
    "event_time": "once, of gw.stream(...)",
    "key_by": "once, with all columns of the key",
}
_SINK = "with_outputs(), the verb, and gw.write_stream(outputs, sink, checkpoint)"
_RESULT = "a verb that ends the query, such as aggregate(n=gw.count()): results have"
#: Calls on results, with what comes before them.
_OF_RESULTS = {
    **dict.fromkeys(("sink_to", "add_sink", "write", "write_stream"), f"say .{_SINK}, for"),
    **dict.fromkeys(("show", "to_pandas", "to_arrow", "to_pylist"), f"say {_RESULT}"),
}

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from gpu_windows.annotations import Column

    R = TypeVarWithDefault("R", default=Any)
else:
    #: What verbs return: results, which are a table of some kind, or `Outputs`.
    R = TypeVar("R")
_S = TypeVar("_S", bound="LastStep[Any]")


class Step:
    """A step of a query; asked for what only a later step has, it names the step between."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_factories(cls, methods=True)
        cls.__repr__ = Step.__repr__  # type: ignore[method-assign] # that of a dataclass is long

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return the calls that may come next, with the step that each returns, in order."""
        return {}

    def __dir__(self) -> Iterable[str]:
        """List what may come next, without the fields that earlier calls have filled."""
        return {*super().__dir__()} - {each.name for each in fields(self)}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """Return the columns, the steps so far, and what may come next."""
        return table_text(type(self).__name__, self._describe())

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with a picture of windows."""
        pictures = (getattr(getattr(self, each.name), "picture", str)() for each in _fields(self))
        return table_html(type(self).__name__, self._describe(), next(filter(None, pictures), ""))

    def _describe(self) -> dict[str, str]:
        after = [name for name in _public_names(self) if callable(getattr(type(self), name, None))]
        return {**self._describe_fields(), "next": ", ".join(after)}

    def _describe_fields(self) -> dict[str, str]:
        """Return human-readable descriptions of the fields, those of earlier steps first."""
        values = {each.name: getattr(self, each.name) for each in _fields(self)}
        earlier = (each._describe_fields() for each in values.values() if isinstance(each, Step))
        rows = {name: text for rows in earlier for name, text in rows.items()}
        own = {_LABELS.get(name, name.rstrip("_")): _text_of(each) for name, each in values.items()}
        return {**rows, **{name: text for name, text in own.items() if text}}

    if not TYPE_CHECKING:  # type checkers shall see what the class has, and no more

        def __getattr__(self, name: str) -> NoReturn:
            """Raise `MissingStepError`, an `AttributeError`, that names the missing step.

            For names of Spark and of Flink it gives the ones that the steps have here.
            """
            own_name, kind = _HABITS.get(name, _SNAKE.sub("_", name).lower()), type(self)
            has, call = _CALLS.get(name, (own_name, own_name))
            if call != name and not name.startswith("_") and has in dir(kind):
                raise MissingStepError(f"say .{call} for .{name}", value=kind.__name__)
            later = (call for call, step in self._later().items() if has in dir(step))
            missing = None if name.startswith("_") else next(later, None)
            if missing is None:
                self._refuse_other_place(own_name, name)
                raise AttributeError(
                    f"{kind.__name__!r} object has no attribute {name!r}{self._like(name)}"
                )
            raise MissingStepError(f"say .{missing} before .{call}", value=kind.__name__)

    def _refuse_other_place(self, own_name: str, name: str) -> None:
        """Raise `MissingStepError` for a call that belongs to the rows, or to the results."""
        call = _CALLS.get(name, (own_name, own_name))
        if call[0] in _EARLIER:
            rule = f"say .{call[1]} {_EARLIER[call[0]]}"
            rule += "" if call[1] == name else f", for .{name}"
        elif own_name in _OF_RESULTS:
            rule = f"{_OF_RESULTS[own_name]} .{name}"
        else:
            return
        raise MissingStepError(rule, value=type(self).__name__)

    def _like(self, name: str) -> str:
        """Return a hint to a name of this step, or of a later one, that is like another."""
        if name.startswith("_"):
            return ""
        near = did_you_mean(name, _public_names(self))
        hints = (
            (did_you_mean(name, _public_names(step)), call) for call, step in self._later().items()
        )
        return near or next((f"{hint}, after .{call}" for hint, call in hints if hint), "")


#: Fields of steps by the names of lines of `explain`.
_LABELS = {"assigner": "window", "keys": "key", "source": "columns"}


def _fields(step: Any) -> tuple[Any, ...]:
    return fields(step)


def _text_of(value: Any) -> str:
    """Return a human-readable description of a field of a step; empty for one that is not set."""
    if isinstance(value, Source):
        fields = map(value.schema.field, value.user_columns)
        return "\n".join(f"{field.name}: {field.type}" for field in fields)
    if isinstance(value, tuple) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    if isinstance(value, str):
        return value
    describe = getattr(value, "describe", None)
    return str(describe()) if callable(describe) else ""


def _public_names(step: object) -> list[str]:
    return [name for name in dir(step) if not name.startswith("_")]


@dataclass(frozen=True, kw_only=True)
class LastStep(Step, Generic[R]):
    """A step with verbs that end the query.

    Parameters
    ----------
    returns_outputs : bool
        Whether verbs return all outputs, not the results alone.
    """

    returns_outputs: bool = False

    def with_outputs(self) -> Any:
        """Let the verb that comes next return all `Outputs`, not the results alone.

        Beside the results these have the late and the rejected rows, side outputs, counters and
        the plan; `write_stream` takes them.

        Examples
        --------
        >>> import gpu_windows as gw
        >>> import pyarrow as pa
        >>> clicks = pa.table({"user": ["ann", "ann"], "page": [1, 2]})
        >>> windows = gw.stream(clicks).key_by("user").count_window(2)
        >>> outputs = windows.with_outputs().aggregate(n=gw.count())
        >>> outputs.result()["n"].to_pylist(), outputs.late().num_rows
        ([2], 0)
        """
        return replace(self, returns_outputs=True)

    def _end(self, outputs: Outputs) -> R:
        """Return what a verb returns: results, or all outputs after `with_outputs`."""
        return outputs if self.returns_outputs else outputs.result()  # type: ignore[return-value]

    def _next(self, step: _S, right: object = None) -> _S:
        """Return the step that comes next, whose verbs return what those of this step do.

        ``right``: the other step that it comes after, if there is one.
        """
        either = self.returns_outputs or getattr(right, "returns_outputs", False)
        return replace(step, returns_outputs=True) if either else step


@dataclass(frozen=True, kw_only=True)
class ConfigurableStep(LastStep[R]):
    """A step with verbs, an order of arrival and options.

    Parameters
    ----------
    order : tuple of str or Column
        Columns of the order of arrival.
    options_ : Options
    """

    order: tuple[str | Column, ...] = ()
    options_: Options = Options()  # noqa: RUF009 - frozen

    def arrival_order(self, *columns: str | Column) -> Self:
        """Name the columns that give the order of arrival, which a shuffle in Spark loses.

        Ignored on an Arrow table, whose order is its order of arrival.

        Parameters
        ----------
        *columns : str or Column
            Most significant first. Of two inputs: names of columns that both have.
        """
        return replace(self, order=columns)

    def options(self, **options: Any) -> Self:
        """Change how the query runs, not what it gives: see `Options`.

        Parameters
        ----------
        **options
            Fields of `Options`, such as ``device="cpu"``.
        """
        return replace(self, options_=change_options(self.options_, options))
