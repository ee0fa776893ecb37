"""Both back ends have the functions of the contract, and no others."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract import groups
from gpu_windows.kernels.contract.modules import Modules

PACKAGES = ("cpu", "cuda")

#: The Protocol of every module.
CONTRACT: dict[str, Any] = {
    name: typing.get_origin(kind) or kind
    for name, kind in typing.get_type_hints(Modules).items()
    if name in {field.name for field in fields(Modules)}
}

#: The class of a back end that stands for a type variable of the contract.
OPAQUE = {groups.G: "Groups", groups.G_contra: "Groups"}

#: What the modules of the contract are made of; nobody but they may call it.
PARTS = {
    "cpu": {
        "machine", "modules", "moments", "rules", "search", "sorting",
    },
    "cuda": {
        "blocks", "cells", "compiler", "cupy_kernels", "float_cells", "kernel", "launcher",
        "library", "memory", "merge_path", "modules", "primitives", "probe", "reach", "replicas",
        "resident", "rules", "scan", "search", "session", "sorting", "staging", "texts", "types",
        "windows",
    },
}  # fmt: skip

#: What is on the host only: keys become codes there, and what goes through the rows of a key or a
#: window one by one.
HOST_ONLY = {
    "cpu": {"admission", "matching", "merging", "panes", "running"},
    "cuda": set[str](),
}

#: Public functions of modules of the contract that other modules of the package call.
SHARED = {
    "cpu.keys": {"hash_bytes", "mix"},
    "cuda.grouping": {"groups_at", "key_begins", "none"},
}

each_module = pytest.mark.parametrize("name", CONTRACT)
each_package = pytest.mark.parametrize("package", PACKAGES)


def _module(package: str, name: str) -> ModuleType:
    return importlib.import_module(f"gpu_windows.kernels.{package}.{name}")


def _promised(name: str) -> dict[str, Callable[..., Any]]:
    """Return the functions that the contract names for a module."""
    return {
        method: value
        for method, value in vars(CONTRACT[name]).items()
        if inspect.isfunction(value) and not method.startswith("_")
    }


def _public(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """Return the public functions and kernels of a module: those made there or in ``__all__``."""
    exported = getattr(module, "__all__", ())
    found = {}
    for name, value in vars(module).items():
        function = getattr(value, "definition", value)  # a kernel is called like a function
        own = getattr(function, "__module__", "") == module.__name__ or name in exported
        if own and inspect.isfunction(function) and not name.startswith("_"):
            found[name] = value
    return found


def _parameters(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return names and kinds of parameters."""
    parameters = inspect.signature(function).parameters.values()
    return [(part.name, part.kind) for part in parameters if part.name != "self"]


@each_package
@each_module
def test_a_back_end_has_the_functions_of_the_contract_and_no_others(
    package: str, name: str
) -> None:
    promised = _promised(name)
    assert promised
    public = _public(_module(package, name))
    shared = SHARED.get(f"{package}.{name}", set())
    assert shared.isdisjoint(promised)
    assert public.keys() == promised.keys() | shared


@each_package
@each_module
def test_their_parameters_have_the_same_names(package: str, name: str) -> None:
    public, promised = _public(_module(package, name)), _promised(name)
    made = {function: _parameters(public[function]) for function in promised}
    assert made == {function: _parameters(promised[function]) for function in promised}
    assert max(map(len, made.values())) <= 6, "make a record of some"


@each_module
def test_on_cuda_they_take_arrays_of_the_side_that_the_contract_says(name: str) -> None:
    """An array of the host is NumPy's to mypy, one of a device anything."""
    module = _module("cuda", name)
    public = _public(module)
    for function, promise in _promised(name).items():
        wanted = {
            part: _of_module(module, kind) for part, kind in typing.get_type_hints(promise).items()
        }
        assert typing.get_type_hints(public[function]) == wanted, function


def _of_module(module: ModuleType, kind: Any) -> Any:
    """Return a type with the module's own class in the place of a type variable."""
    if isinstance(kind, TypeVar):
        return getattr(module, OPAQUE[kind])
    parts = typing.get_args(kind)
    if any(isinstance(part, TypeVar) for part in parts):  # or None
        return typing.Union[tuple(_of_module(module, part) for part in parts)]  # noqa: UP007
    return kind


@each_package
@each_module
def test_their_docs_are_in_the_contract_alone(package: str, name: str) -> None:
    protocol, public = CONTRACT[name], _public(_module(package, name))
    at = f"{protocol.__module__.removeprefix('gpu_windows.kernels.')}.{protocol.__name__}"
    for function, promise in _promised(name).items():
        assert promise.__doc__
        assert public[function].__doc__ == f"See `{at}.{function}`."


@each_package
def test_every_module_is_in_the_contract_or_part_of_one(package: str) -> None:
    path = importlib.import_module(f"gpu_windows.kernels.{package}").__path__
    found = {info.name for info in pkgutil.iter_modules(path)}
    assert found == {*CONTRACT, *PARTS[package], *HOST_ONLY[package]}


@each_package
def test_a_back_end_is_put_together_of_its_modules(package: str) -> None:
    modules = _module(package, "modules").MODULES
    made = {name: value.__name__ for name, value in vars(modules).items()}
    assert made == {name: f"gpu_windows.kernels.{package}.{name}" for name in CONTRACT}


def test_a_device_has_each_method_of_memory_of_its_own() -> None:
    """One that it inherits would work in the memory of the host."""
    own, host = vars(_module("cuda", "memory").CudaBackend), vars(Backend)
    alike = {"remembering", "to_device"}  # of the methods that differ
    methods = {
        name
        for name, value in host.items()
        if inspect.isfunction(value) and not name.startswith("__") and name not in alike
    }
    assert methods >= {"to_host", "deliver", "upload", "release", "_move"}
    assert {name for name in methods if name not in own} == set()
    assert {name for name in methods if _parameters(own[name]) != _parameters(host[name])} == set()


@each_package
def test_rules_that_kernels_name_are_there(package: str) -> None:
    """Numba would find a wrong name at the first call of its kernel, and mypy does not."""
    rules = _module(package, "rules")
    named = set()
    for path in Path(str(rules.__file__)).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        named |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "rules"
        }
    assert len(named) > 20
    assert {name for name in named if name not in vars(rules)} == set()
