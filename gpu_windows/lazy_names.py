"""Public names that are imported from their modules at first access."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import FunctionType
from typing import Any


class LazyNames:
    """The public names of a module.

    Parameters
    ----------
    module : str
        The module, ``gpu_windows`` or one in it.
    homes : mapping of str to str
        The modules that define the names, without ``gpu_windows.``, each with its names. A name of
        Python's own ends with an underscore there, not here.

    Attributes
    ----------
    homes : dict of str to (str, str)
        The home of each name, and its name there.
    """

    def __init__(self, module: str, homes: Mapping[str, str]) -> None:
        self._module = module
        self.homes = {
            name.rstrip("_"): (home, name)
            for home, names in homes.items()
            for name in names.split()
        }

    def load(self, name: str, hint: str = "") -> Any:
        """Import a name, and set it in the module so that it is looked up once.

        Functions check the names of their arguments: see `gpu_windows.arguments`.

        Raises
        ------
        AttributeError
            If there is no such name; ``hint`` ends its message.
        """
        if name not in self.homes:
            raise AttributeError(f"module {self._module!r} has no attribute {name!r}{hint}")
        home, own_name = self.homes[name]
        module = import_module(f"gpu_windows.{home}")
        value = getattr(module, own_name)
        if isinstance(value, FunctionType) and not hasattr(value, "__wrapped__"):
            from gpu_windows.arguments import check_arguments

            value = check_arguments({})(value)
            for place in (module, sys.modules[value.__module__]):  # the last is where pickle looks
                setattr(place, own_name, value)
        setattr(sys.modules[self._module], name, value)
        return value

    def list_names(self) -> list[str]:
        """Return the names of the module, imported or not, in order: its ``__dir__``."""
        return sorted({*vars(sys.modules[self._module]), *self.homes})
