"""What is written beside results: whose they are, and which micro-batches are complete.

A path of results holds::

    owners/GENERATION/                   a text: the query that writes, and what it writes
    commits/GENERATION/BLOCK/NUMBER/     a text: a micro-batch is complete, and where its rows are
    result/GENERATION-NUMBER-ATTEMPT/    Parquet files, never touched again
    late/GENERATION-NUMBER-ATTEMPT/
    sides/TAG/GENERATION-NUMBER-ATTEMPT/ a side output

A generation begins where a query of another checkpoint takes over, and where a query has more
columns than it had. A text is JSON and names its
format. A micro-batch without rows leaves nothing.

A bounded query writes there by `Outputs.write_parquet`: each write is a generation of
one micro-batch, whose text names its files. The last one that is complete counts, and no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

from gpu_windows.errors import OutputError

#: Folders of a path.
OWNERS, COMMITS = "owners", "commits"
#: Outputs of a query.
RESULT, LATE = "result", "late"
OUTPUTS = (RESULT, LATE)


#: What tells a checkpoint from others.
_IDENTITY = re.compile(r"[0-9a-f]{32}")


def is_identity(text: str) -> bool:
    """Whether a text is what tells a checkpoint from others: 32 hex digits."""
    return _IDENTITY.fullmatch(text) is not None


def side_name(tag: str) -> str:
    """Return what a side output is called among the outputs of a query."""
    return f"sides/{tag}"


_FORMAT = 1
#: Micro-batches whose texts are listed together, so that new ones are found among few.
BLOCK = 1_000


@dataclass(frozen=True)
class Owner:
    """A query that writes to a path.

    Parameters
    ----------
    generation : int
        How many queries wrote there before.
    query : str
        What tells its checkpoint from others.
    schemas : dict of str to str
        Outputs to their schemas, as Spark writes them in JSON.
    is_bounded : bool
        Whether it is a write of a bounded query, which replaces those before it.
    """

    generation: int
    query: str
    schemas: Mapping[str, str]
    is_bounded: bool = False

    @property
    def folder(self) -> str:
        """Where its text is, below the path."""
        return f"{OWNERS}/{_generation(self.generation)}"

    @property
    def next_folder(self) -> str:
        """Where that of a query is that takes over from it."""
        return f"{OWNERS}/{_generation(self.generation + 1)}"

    @property
    def text(self) -> str:
        """What `from_text` reads."""
        return json.dumps({"format": _FORMAT, **asdict(self)})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what another process wrote.

        Raises
        ------
        OutputError
            If it is no such text, or one of a format that is not known.
        """
        with _as_written():
            found = _read(text)
            bounded = found.get("is_bounded", False)
            return cls(found["generation"], found["query"], found["schemas"], bounded)


@dataclass(frozen=True)
class Part:
    """What a micro-batch wrote of one output.

    Parameters
    ----------
    folder : str
        Below the path.
    rows : int
    files : dict of str to int, optional
        Names of the files in it that count, and their rows. None: all of them do.
    """

    folder: str
    rows: int
    files: Mapping[str, int] | None = None

    def choose_files(self, found: Mapping[str, int | None]) -> dict[str, int | None]:
        """Return those of the files in the folder, with their rows, that count."""
        return {n: rows for n, rows in found.items() if self.files is None or n in self.files}


@dataclass(frozen=True)
class Commit:
    """A complete micro-batch.

    Parameters
    ----------
    generation, number : int
        Of the query, and of the micro-batch.
    rows : int
        That it took in.
    outputs : dict of str to Part
        Those that have rows.
    planned_ms : int, optional
        When Spark planned it, in milliseconds since 1970, if that is known.
    """

    generation: int
    number: int
    rows: int
    outputs: Mapping[str, Part]
    planned_ms: int | None = None

    @property
    def position(self) -> tuple[int, int]:
        """What micro-batches are ordered by."""
        return self.generation, self.number

    @property
    def folder(self) -> str:
        """Where its text is, below the path."""
        block = f"{self.number // BLOCK:08}"
        return f"{COMMITS}/{_generation(self.generation)}/{block}/{self.number:012}"

    @property
    def text(self) -> str:
        """What `from_text` reads."""
        return json.dumps({"format": _FORMAT, **asdict(self)})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what another process wrote.

        Raises
        ------
        OutputError
            If it is no such text, or one of a format that is not known.
        """
        with _as_written():
            found = _read(text)
            parts = {name: Part(**part) for name, part in found["outputs"].items()}
            planned_ms = found.get("planned_ms")
            return cls(found["generation"], found["number"], found["rows"], parts, planned_ms)


def blocks_from(generation: int, number: int) -> str:
    """Return a pattern of the folders, below the path, in which a micro-batch and later ones are.

    So of old ones not even the names are read: ``{00000017,0000001[8-9],000000[2-9]?,...}``.
    """
    first = f"{number // BLOCK:08}"
    later = (
        f"{first[:at]}[{int(digit) + 1}-9]{'?' * (len(first) - at - 1)}"
        for at, digit in enumerate(first)
        if digit != "9"
    )
    return f"{COMMITS}/{_generation(generation)}/{{{','.join([first, *later])}}}"


def part_folder(output: str, generation: int, number: int, attempt: str) -> str:
    """Return where an attempt at a micro-batch writes an output, below the path."""
    return f"{output}/{_generation(generation)}-{number:012}-{attempt}"


def check_output(output: str, known: Iterable[str] = OUTPUTS) -> None:
    """Raise `OutputError` for an output that a path does not hold."""
    if output not in known:
        raise OutputError(f"the outputs of a path are {', '.join(known)}", value=repr(output))


def _generation(number: int) -> str:
    return f"{number:08}"


def _read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    if found["format"] != _FORMAT:
        rule = f"texts beside results have the format {_FORMAT}"
        raise OutputError(rule, value=found["format"])
    return found


@contextmanager
def _as_written() -> Iterator[None]:
    """Tell a text that is none of ours."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError("texts beside results must be what write_stream wrote") from error
