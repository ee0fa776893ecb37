"""Calls of public functions with an argument that they do not take, or without one that they need.

Python's own message has only the name. These say what to write instead: a name that is alike, the
name of Spark's parameter here, or the other call that takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import ParamSpec, TypeVar

from gpu_windows.errors import MissingArgumentError, UnknownArgumentError, did_you_mean

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Kind = TypeVar("_Kind", bound=type)

#: Names of parameters in Spark, Flink and pandas, to what is written here: it begins with a name.
_HABITS = {
    "windowDuration": "size",
    "window_duration": "size",
    "slideDuration": "slide",
    "slide_duration": "slide",
    "startTime": "offset",
    "start_time": "offset",
    "origin": "offset",
    "gapDuration": "gap",
    "gap_duration": "gap",
    "delayThreshold": "watermarks",
    "timestampColumn": "column",
    "eventTime": "column",
    "checkpointLocation": "checkpoint",
    "checkpoint_location": "checkpoint",
    "queryName": "name",
    "query_name": "name",
    "path": "sink",
    **{
        name: f"trigger={{{name!r}: ...}}"
        for name in ("availableNow", "continuous", "once", "processingTime", "realTime")
    },
}
#: Names of parameters to the calls that have them, where another one was given it.
_ELSEWHERE = {
    "how": "the verb of a join takes it, select(..., how='left')",
    "on": "key_by of both sides names the columns of a join",
    "filter": "aggregates take conditions, gw.sum('v').filter('v > 0')",
    "outputMode": "results are appended; upsert(...) is a sink that replaces",
}
_BY_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def check_arguments(
    missing: Mapping[str, str],
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Return a decorator that checks the names of a function's arguments at each call.

    Parameters
    ----------
    missing : mapping of str to str
        Names of parameters without a default to the error message if they are missing.

    Raises
    ------
    MissingArgumentError, UnknownArgumentError
        By the decorated function.
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        parameters = signature(function).parameters
        takes_all = any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())
        accepted = {name for name, each in parameters.items() if each.kind in _BY_KEYWORD}
        required = [
            name if each.default is Parameter.empty and each.kind in _BY_KEYWORD else None
            for name, each in parameters.items()
        ]

        @wraps(function)
        def checked_call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            if not (takes_all or kwargs.keys() <= accepted):
                name = next(each for each in kwargs if each not in accepted)
                of_class = f"{args[0].__name__}." if args and isinstance(args[0], type) else ""
                rule = _unknown_rule(of_class + function.__name__.rstrip("_"), name, [*parameters])
                raise UnknownArgumentError(rule, value=f"{name}={kwargs[name]!r}")
            for needed in required[len(args) :]:
                if needed is not None and needed not in kwargs:
                    rule = f"{function.__name__.rstrip('_')} takes {needed}, which is missing"
                    raise MissingArgumentError(missing.get(needed, rule))
            return function(*args, **kwargs)

        return checked_call

    return decorate


def check_factories(kind: _Kind, *, methods: bool = False) -> _Kind:
    """Make public factories of a class of this package check names of arguments.

    ``methods``: public methods, too, which may be called for each row.
    """
    if not kind.__module__.startswith("gpu_windows."):
        return kind
    check = check_arguments({})
    for name, member in [*vars(kind).items()]:
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(kind, name, classmethod(check(member.__func__)))
        elif isinstance(member, FunctionType) and methods and not hasattr(member, "__wrapped__"):
            setattr(kind, name, check(member))
    return kind


def _unknown_rule(call: str, name: str, parameters: list[str]) -> str:
    """Return the error message for an argument that a function does not take."""
    names = [each for each in parameters if each not in ("self", "cls")]
    habit = _HABITS.get(name)
    hint = did_you_mean(name, names)
    if name in _ELSEWHERE:
        hint = f": {_ELSEWHERE[name]}"
    elif habit is not None and habit.partition("=")[0] in names:
        hint = f": say {habit}"
    return f"{call} takes no {name}{hint}; it takes {', '.join(names) or 'nothing'}"
