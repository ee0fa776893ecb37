"""The facts that state depends on, as JSON values, and the changes between those of two plans.

Descriptions may be reworded at any time, facts may not: they are names, numbers and types. A class
of this package counts by its name and its parameters (other than those at their default, so that a
parameter may be added), user code by its qualified name, its public plain attributes and the types
that it declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from hashlib import sha256
from operator import attrgetter, itemgetter, methodcaller
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.functions.window import Aggregates
from gpu_windows.planning.own_columns import NO_KEY, NO_TIME, SPREAD
from gpu_windows.planning.plan import ARRIVAL, Plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import show_ticks, ticks

#: A JSON value.
Fact = Any

#: Attributes in which user code declares columns and types of state.
_DECLARATIONS = ("columns", "state", "window_state", "key_state", "accumulator", "result",
             "is_event_time", "has_bounds", "order_free", "parts", "side_outputs",
             "broadcast_state")  # fmt: skip
#: Types of public attributes of user code that count; fields of user code of mutable types do not.
_PLAIN = (bool, int, float, str, bytes, tuple, frozenset, timedelta, date, time, Decimal, Enum,
          np.generic, pa.DataType, FunctionType)  # fmt: skip
_MUTABLE = (dict, list, set)
_PACKAGE = __name__.partition(".")[0]
#: Name of the fact with the class of a part.
_CLASS = "class"
#: Parameters of our classes and of queries that are durations; bounds are, in these classes only.
_DURATIONS = {"size", "slide", "offset", "gap", "max_size", "step", "lengths", "lateness",
              "out_of_orderness", "idleness", "max_ahead", "interval", "timeout", "time_to_live",
              "recent", "valid_for", "within"}  # fmt: skip
_BOUNDS, _BOUNDED = {"lower", "upper"}, {"Range", "IntervalJoinSpec"}
#: How messages call columns of our own.
_DISPLAY_NAMES = {NO_TIME: "no time", NO_KEY: "no key", SPREAD: "no key", ARRIVAL: "arrival"}


def facts_of(plan: Plan) -> dict[str, Fact]:
    """Return the facts that the state of a plan depends on, by name."""
    query, schema = plan.query, plan.query.schema
    whole = {
        **{name: fact_of(part) for name, part in query.parts.items()},
        "time": query.time,
        "watermarks": fact_of(query.watermarks.in_state),
        "key": list(query.keys),
        "order of arrival": list(plan.order),
        "columns": [[name, _type(schema.field(name).type)] for name in plan.input_columns],
        "results": fact_of(plan.result_schema),
        "strategy": plan.strategy.value,
    }
    return {name: each for name, each in whole.items() if each is not None}


def fact_of(value: Any) -> Fact:
    """Return a part of a query, or a parameter of one, as a JSON value."""
    match value:
        case pa.DataType():
            return _type(value)
        case pa.Schema():
            return [[field.name, _type(field.type)] for field in value]
        case pa.Scalar():
            return {"of": _type(value.type), "value": repr(value.as_py())}
        case pc.Expression():
            return _expression(value)
        case Aggregates():
            return {_CLASS: "Aggregates", "of": {b.name: fact_of(b) for b in value.bound}}
        case Mapping():
            return {str(name): fact_of(each) for name, each in value.items()}
        case tuple() | list():
            return [fact_of(each) for each in value]
        case set() | frozenset():
            return sorted((fact_of(each) for each in value), key=repr)
        case _:
            return _plain(value)


def _plain(value: Any) -> Fact:
    match value:
        case Enum():
            return value.name
        case np.generic():
            return fact_of(value.item())
        case None | bool() | int() | str():
            return value
        case timedelta():
            return ticks(value)
        case float() | bytes() | Decimal() | date() | time():
            return repr(value)  # JSON has no NaN
        case itemgetter() | attrgetter() | methodcaller():
            return repr(value)
        case _:
            return _function(value) if callable(value) else _part(value)


def describe_changes(before: Fact, after: Fact, name: str = "", owner: str = "") -> Iterator[str]:
    """Yield a description of each change between two facts: ``window.size was 1 min, is 2 min``.

    ``name``: the path of the facts; ``owner``: the class of the part that has them.
    """
    if before == after:
        return
    if _is_schema(before) and _is_schema(after) and _names(before) == _names(after):
        before, after = dict(before), dict(after)
    alike = isinstance(before, dict) and isinstance(after, dict)
    if not alike or before.get(_CLASS) != after.get(_CLASS):
        leaf = name.rpartition(".")[2]
        yield f"{name} was {_describe(before, leaf, owner)}, is {_describe(after, leaf, owner)}"
        return
    for each in sorted(before.keys() | after.keys()):
        path = f"{name}.{each}" if name else each
        yield from describe_changes(before.get(each), after.get(each), path, before.get(_CLASS, ""))


def _is_schema(fact: Fact) -> bool:
    """Whether these are names and types, in order."""
    return isinstance(fact, list) and all(
        isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in fact
    )


def _names(schema: list[Any]) -> list[str]:
    return [name for name, _ in schema]


def _describe(fact: Fact, name: str, owner: str) -> str:
    """Describe a fact of this name, of a part of this class, with ticks as durations."""
    is_duration = name in _DURATIONS and "." not in owner  # the class of user code has a module
    if is_duration or (name in _BOUNDS and owner in _BOUNDED):
        match fact:
            case int():
                return "unbounded" if fact in (LONG_MIN, LONG_MAX) else show_ticks(fact)
            case list():
                return ", ".join(_describe(each, name, owner) for each in fact)
    return _describe_value(fact)


def _describe_value(fact: Fact) -> str:
    match fact:
        case None:
            return "not there"
        case {"class": "BoundAggregate", "aggregate": {"function": str()} as aggregate}:
            return (
                f"{aggregate['function']}({', '.join(map(_describe_value, _arguments(aggregate)))})"
            )
        case dict():
            inner = sorted(name for name in fact if name != _CLASS)
            kind = fact.get(_CLASS, "")
            parameters = ", ".join(f"{name}={_describe(fact[name], name, kind)}" for name in inner)
            return f"{fact[_CLASS]}({parameters})" if _CLASS in fact else f"({parameters})"
        case [[str(), _], *_]:
            return ", ".join(
                f"{_describe_value(name)} {_describe_value(each)}" for name, each in fact
            )
        case list():
            return ", ".join(map(_describe_value, fact)) or "nothing"
        case str():
            return _DISPLAY_NAMES.get(fact, fact)
        case _:
            return str(fact)


def _arguments(aggregate: Mapping[str, Fact]) -> Iterator[Fact]:
    """Yield descriptions of the parameters of an aggregate, the columns first."""
    first = ("column", "by")
    yield from (aggregate[name] for name in first if name in aggregate)
    rest = sorted(aggregate.keys() - {_CLASS, "function", *first})
    yield from (f"{name}={_describe(aggregate[name], name, aggregate[_CLASS])}" for name in rest)


# ---- parts


def _part(value: Any) -> Fact:
    kind = type(value)
    if _is_ours(kind):
        return {_CLASS: kind.__name__, **_parameters(value)}
    facts = {**_attributes(value), **_parameters(value), **_declarations(value)}
    return {_CLASS: _qualified_name(kind), **facts}


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == _PACKAGE


def _parameters(value: Any) -> dict[str, Fact]:
    """Return the public fields of a dataclass.

    A field of a class of ours is left out at its default, a field of user code if its value is
    mutable.
    """
    bases: tuple[type, ...] = type(value).__mro__
    if not is_dataclass(value):
        return {}
    own_classes = [kind for kind in bases if _is_ours(kind) and is_dataclass(kind)]
    own_fields = {field.name for kind in own_classes for field in fields(kind)}
    facts = {}
    for field in fields(value):
        parameter = getattr(value, field.name)
        is_own = field.name in own_fields
        if field.name.startswith("_") or (not is_own and isinstance(parameter, _MUTABLE)):
            continue
        fact = fact_of(parameter)
        if not (is_own and field.default is not MISSING and fact == fact_of(field.default)):
            facts[field.name] = fact
    return facts


def _attributes(value: Any) -> dict[str, Fact]:
    """Return the immutable public attributes of an object that are not fields."""
    field_names = {field.name for field in fields(value)} if is_dataclass(value) else set()
    return {
        name: fact_of(each)
        for name, each in getattr(value, "__dict__", {}).items()
        if isinstance(each, _PLAIN) and not name.startswith("_") and name not in field_names
    }


def _expression(value: pc.Expression) -> Fact:
    """Return the text of an expression, and a digest if Arrow abbreviates long lists in it."""
    text = str(value)
    if "..." not in text:
        return text
    reduced: Any = value.__reduce__()
    return [text, sha256(reduced[1][0]).hexdigest()]


def _declarations(value: Any) -> dict[str, Fact]:
    facts = {name: fact_of(getattr(value, name, None)) for name in _DECLARATIONS}
    return {name: each for name, each in facts.items() if each not in (None, [], {})}


def _function(value: Any) -> Fact:
    """Return a function by its name, with the arguments bound to it."""
    if isinstance(value, partial):
        bound = {"arguments": fact_of(value.args), "keywords": fact_of(value.keywords)}
        return {_CLASS: "partial", "of": fact_of(value.func), **bound}
    if isinstance(value, MethodType):
        return {_CLASS: "method", "name": value.__name__, "of": fact_of(value.__self__)}
    return _qualified_name(value) if hasattr(value, "__qualname__") else _part(value)


def _qualified_name(value: Any) -> str:
    module = getattr(value, "__module__", None) or "builtins"  # methods written in C have none
    return f"{module}.{value.__qualname__}"


def _type(dtype: pa.DataType) -> Fact:
    """Return a type by the values that it holds.

    Neither names and nullability of nested fields count nor the width of offsets (large strings,
    binary and lists).
    """
    if types.is_large_string(dtype):
        return str(pa.string())
    if types.is_large_binary(dtype):
        return str(pa.binary())
    if types.is_list(dtype) or types.is_large_list(dtype):
        return {"list of": _type(dtype.value_type)}
    if types.is_map(dtype):
        return {"map of": [_type(dtype.key_type), _type(dtype.item_type)]}
    if types.is_struct(dtype):
        return {"struct of": [[field.name, _type(field.type)] for field in dtype]}
    return str(dtype)
