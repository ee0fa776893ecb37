"""A query as a stage of another one, whose rows are its results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpu_windows.errors import QueryError

_NAME = re.compile(r"[A-Za-z0-9_-]+")
#: What the folder and the names of outputs of earlier stages begin with.
_FOLDER = "stages/"


@dataclass(frozen=True)
class Stage:
    """Name of a query whose results another query reads.

    Parameters
    ----------
    name : str
        Letters, digits, ``_`` and ``-``.
    keep : bool
        Whether its results are an output of the whole query, too.

    Raises
    ------
    QueryError
        If it is not such a name.
    """

    name: str
    keep: bool = False

    def __post_init__(self) -> None:
        name: Any = self.name
        keep: Any = self.keep
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            rule = "a stage's name has letters, digits, _ and - only, because it names a folder"
            raise QueryError(rule, value=repr(name))
        if not isinstance(keep, bool):
            raise QueryError("keep is True or False", value=repr(keep))


def stage_output(stage: str, output: str) -> str:
    """Return what an output of an earlier stage is called among the outputs of a query."""
    return f"{_FOLDER}{stage}/{output}"


def is_of_stage(output: str) -> bool:
    """Whether an output is one of an earlier stage."""
    return output.startswith(_FOLDER)


def of_stage(output: str) -> str:
    """Return the stage and its output, ``minutes/late``, of an output of an earlier stage."""
    return output.removeprefix(_FOLDER)


def check_distinct_stages(names: Iterable[str]) -> None:
    """Raise `QueryError` unless the stages of a query have different names."""
    found = [name.lower() for name in names]
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        rule = (
            "each stage of a query has a name of its own, and its results are used once: "
            "gw.stream_results(outputs, 'minutes')"
        )
        raise QueryError(rule, value=", ".join(twice))
