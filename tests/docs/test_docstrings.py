"""Docstrings of the API: each has an example, which runs, and names all parameters."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from types import FunctionType
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import functions, testing, typing
from gpu_windows.datastream.steps import Step
from gpu_windows.runners.outputs import Outputs

#: What needs Spark or a broker: its example is compiled, not run.
_NOT_RUN = {
    "configure", "drop_repeats", "read_commits", "read_output", "read_output_stream", "read_state",
    "scan_stream", "session", "watch", "write_stream", "typing.CheckpointState",
    "typing.CommitSummary", "testing.assert_runs_agree",
}  # fmt: skip
#: Classes whose methods are called by users, besides steps.
_CALLED = (Outputs, typing.Aggregate, typing.Framed, typing.SqlQuery, typing.UserAggregate)
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
_SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]*\n-{3,}$|\Z)", re.M | re.S)
_NAMES = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: ?:.*)?$", re.M)

MODULES = {"": gw, "functions.": functions, "testing.": testing, "typing.": typing}
PUBLIC = [
    f"{prefix}{name}"
    for prefix, module in MODULES.items()
    for name in (gw._NAMES.homes if module is gw else module.__all__)
    if name != "spark_session"  # of pytest, which calls it
]


def _public(name: str) -> Any:
    """Return an object of the API by its name, imported only now."""
    prefix, _, own_name = name.rpartition(".")
    if name == "MetricsListener":
        pytest.importorskip("pyspark")
    return getattr(MODULES[f"{prefix}." if prefix else ""], own_name)


def _methods(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods that users call and that need parameters: of steps all, else makers."""
    every = issubclass(owner, (Step, *_CALLED))
    for name in dir(owner):
        found = inspect.getattr_static(owner, name)
        is_maker = isinstance(found, classmethod | staticmethod)
        if not name.startswith("_") and (is_maker or (every and inspect.isfunction(found))):
            yield name, getattr(owner, name)


def _is_built(owner: type) -> bool:
    """Whether users make objects of a class by its own parameters."""
    is_protocol = getattr(owner, "_is_protocol", False) or issubclass(owner, Enum)
    made = any("__init__" in vars(each) for each in owner.__mro__[:-1])
    return made and not is_protocol and not issubclass(owner, Step | Outputs)


def _parameters(documented: Any) -> list[str]:
    return [name for name in inspect.signature(documented).parameters if name not in ("self", "_")]


def _parameters_in(doc: str) -> set[str]:
    """Return the parameters that a docstring has, and the attributes."""
    lines = (found for _, section in _SECTION.findall(doc) for found in _NAMES.findall(section))
    return {name.lstrip("*") for line in lines for name in line.split(", ")}


def _list_missing(name: str, documented: Any) -> list[str]:
    docs = documented.__mro__ if isinstance(documented, type) else (documented,)
    names = set().union(*(_parameters_in(inspect.cleandoc(each.__doc__ or "")) for each in docs))
    return [f"{name}({each})" for each in _parameters(documented) if each not in names]


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_named(name: str) -> None:
    documented = _public(name)
    if not isinstance(documented, type):
        assert _list_missing(name, documented) == []
        return
    missing = _list_missing(name, documented) if _is_built(documented) else []
    for called, method in _methods(documented):
        missing += _list_missing(f"{name}.{called}", method)
    assert missing == []


@pytest.mark.parametrize("name", PUBLIC)
def test_examples(name: str) -> None:
    public = _public(name)
    found = doctest.DocTestParser().get_examples(inspect.getdoc(public) or "")
    assert found, "an example is missing"
    skipped = [each for each in found if each.options.get(doctest.SKIP)]
    assert bool(skipped) == (name in _NOT_RUN)
    for each in skipped:
        _check_calls(each.source)
    for documented in _with_members(public):
        _run(documented)


def _with_members(public: Any) -> Iterator[Any]:
    """Yield an object, and the methods and properties of its class, inherited ones of ours too."""
    yield public
    if isinstance(public, type):
        names = (name for name in dir(public) if not name.startswith("_"))
        for member in (inspect.getattr_static(public, name) for name in names):
            is_wrapped = isinstance(member, classmethod | staticmethod)
            inner = member.__func__ if is_wrapped else member
            function = inner.fget if isinstance(inner, property) else inner
            if isinstance(function, FunctionType) and function.__module__.startswith("gpu_windows"):
                yield inner


@cache
def _run(documented: Any) -> None:
    doc = inspect.cleandoc(documented.__doc__ or "")
    where = getattr(documented, "__qualname__", "property")
    runner = doctest.DocTestRunner(optionflags=_FLAGS, verbose=False)
    failures: list[str] = []
    names = {"gw": gw, "pa": pa}
    test = doctest.DocTestParser().get_doctest(doc, names, where, None, 0)
    runner.run(test, out=failures.append)
    assert not failures, "".join(failures)


def _check_calls(source: str) -> None:
    """Raise for an example that names what the API has not, or calls it by other parameters."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and _is_api(node.value):
            getattr(gw, node.attr)
        called = node.func if isinstance(node, ast.Call) else None
        if (
            isinstance(node, ast.Call)
            and isinstance(called, ast.Attribute)
            and _is_api(called.value)
        ):
            keywords = {str(each.arg): each for each in node.keywords}
            inspect.signature(getattr(gw, called.attr)).bind(*node.args, **keywords)


def _is_api(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "gw"
