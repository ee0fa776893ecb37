"""A sink that calls a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from gpu_windows.commits.records import LATE, RESULT, side_name
from gpu_windows.errors import QueryError
from gpu_windows.planning.plan import Plan
from gpu_windows.runners.sink import Sink, SinkBatch, SinkQuery, SinkWriter
from gpu_windows.runners.stages import is_of_stage, of_stage

#: Positional arguments of a function.
_GIVEN = ("results", "late rows", "number")


@dataclass(frozen=True)
class FunctionSink(Sink, SinkWriter):
    """A function of the results, the late and rejected rows, and the number of a micro-batch.

    Where the query has side outputs it takes them too, as ``sides``: tags to DataFrames. Where it
    has a parameter ``stages`` it takes the outputs of earlier stages, by names such as
    ``minutes/late``. Where it has a parameter ``planned_ms`` it takes when Spark planned the
    micro-batch, in milliseconds since 1970, or None: see `SinkBatch.planned_ms`.

    Parameters
    ----------
    function : callable

    Raises
    ------
    QueryError
        If it cannot be called so.
    """

    function: Callable[..., None]

    def __post_init__(self) -> None:
        wanted = _optional_arguments(self.function, stages={}, planned_ms=None)
        with_sides = _takes(self.function, *_GIVEN, sides={}, **wanted)
        if not with_sides and not _takes(self.function, *_GIVEN, **wanted):
            check_takes(self.function, *_GIVEN, **planned_argument(self.function, None))

    def check(self, plan: Plan) -> None:
        """Raise `QueryError` if a function and the query differ in having side outputs.

        Raises
        ------
        QueryError
        """
        sides = tuple(plan.query.side_outputs)
        given = {"sides": sides} if sides else {}
        wanted = _optional_arguments(self.function, stages={}, planned_ms=None)
        check_takes(self.function, *_GIVEN, **given, **wanted)

    def open(self, query: SinkQuery) -> SinkWriter:
        """Return the sink itself: it needs nothing of a query."""
        del query
        return self

    def write(self, batch: SinkBatch) -> None:
        """Call the function."""
        outputs = batch.outputs
        prefix = side_name("")
        sides = {n.removeprefix(prefix): f for n, f in outputs.items() if n.startswith(prefix)}
        given = {"sides": sides} if sides else {}
        stages = {of_stage(n): f for n, f in outputs.items() if is_of_stage(n)}
        wanted = _optional_arguments(self.function, stages=stages, planned_ms=batch.planned_ms)
        self.function(outputs[RESULT], outputs[LATE], batch.number, **given, **wanted)


def planned_argument(function: Any, planned_ms: int | None) -> dict[str, Any]:
    """Return the keyword argument with the plan time, if a function has such a parameter."""
    return _optional_arguments(function, planned_ms=planned_ms)


def check_takes(function: Any, *arguments: str, **options: object) -> None:
    """Raise `QueryError` for an object that cannot be called with these arguments."""
    if _takes(function, *arguments, **options):
        return
    rule = f"a sink is a path, or a function of {', '.join((*arguments, *options))}"
    if not callable(function) or _is_class_of_sinks(function):
        raise QueryError(rule, value=repr(function))
    name = getattr(function, "__name__", type(function).__name__)
    raise QueryError(rule, value=f"{name}{signature(function)}")


def _takes(function: Any, *arguments: str, **options: object) -> bool:
    """Whether an object can be called with these arguments."""
    if not callable(function) or _is_class_of_sinks(function):
        return False
    try:
        signature(function).bind(*arguments, **options)
    except ValueError:  # builtins have no signature
        return True
    except TypeError:
        return False
    return True


def _optional_arguments(function: Any, **values: object) -> dict[str, Any]:
    """Return the keyword arguments for which a function has parameters."""
    try:
        parameters = signature(function).parameters
    except (ValueError, TypeError):  # builtins have no signature, others cannot be called
        return {}
    return {name: value for name, value in values.items() if name in parameters}


def _is_class_of_sinks(function: Any) -> bool:
    """Whether calling it returns a sink and writes nothing."""
    return isinstance(function, type) and issubclass(function, Sink | SinkWriter)
