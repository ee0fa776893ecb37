"""Records beside results: which queries wrote them, and which micro-batches are complete.

A path of results holds::

    owners/GENERATION/                   a record: the query that writes, and its schemas
    commits/GENERATION/BLOCK/NUMBER/     a record: a micro-batch is complete, and its folders
    result/GENERATION-NUMBER-ATTEMPT/    Parquet files, never changed
    late/GENERATION-NUMBER-ATTEMPT/
    sides/TAG/GENERATION-NUMBER-ATTEMPT/ a side output

A generation begins when a query of another checkpoint takes over, and when a query has new columns.
A record is a text file of JSON that names its format. A micro-batch without rows has no record.

Each `Outputs.write_parquet` of a bounded query is a generation with one micro-batch, whose record
names its files. Only the last complete one counts.
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


#: Pattern of the identity of a checkpoint.
_IDENTITY = re.compile(r"[0-9a-f]{32}")


def is_identity(text: str) -> bool:
    """Whether a string is the identity of a checkpoint: 32 hex digits."""
    return _IDENTITY.fullmatch(text) is not None


def side_name(tag: str) -> str:
    """Return the name of a side output among the outputs of a query."""
    return f"sides/{tag}"


_FORMAT = 1
#: Micro-batches whose records are listed together, so that new ones are found by short listings.
BLOCK = 1_000


@dataclass(frozen=True)
class Owner:
    """A query that writes to a path.

    Parameters
    ----------
    generation : int
        Number of earlier generations.
    query : str
        Identity of its checkpoint.
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
        """Folder of its record, below the path."""
        return f"{OWNERS}/{_generation(self.generation)}"

    @property
    def next_folder(self) -> str:
        """Folder of the record of a query that takes over from it."""
        return f"{OWNERS}/{_generation(self.generation + 1)}"

    @property
    def text(self) -> str:
        """The record as JSON; `from_text` reads it."""
        return json.dumps({"format": _FORMAT, **asdict(self)})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what another process wrote.

        Raises
        ------
        OutputError
            If it is not such a record, or has an unknown format.
        """
        with _malformed_as_output_error():
            found = _read(text)
            bounded = found.get("is_bounded", False)
            return cls(found["generation"], found["query"], found["schemas"], bounded)


def read_owners(texts: Iterable[str]) -> list[Owner]:
    """Return owners by their records, in order of their generations.

    If two claimed the same generation at once, the order of their records decides; the other gets
    an error when it writes.
    """
    found = {each.generation: each for each in map(Owner.from_text, sorted(texts, reverse=True))}
    return [found[generation] for generation in sorted(found)]


@dataclass(frozen=True)
class Part:
    """One output of a micro-batch.

    Parameters
    ----------
    folder : str
        Below the path.
    rows : int
    files : dict of str to int, optional
        Names of its files to their rows. None: all files in the folder.
    """

    folder: str
    rows: int
    files: Mapping[str, int] | None = None

    def choose_files(self, found: Mapping[str, int | None]) -> dict[str, int | None]:
        """Return the output's files, with their rows, among those found in the folder."""
        return {n: rows for n, rows in found.items() if self.files is None or n in self.files}


@dataclass(frozen=True)
class Commit:
    """A complete micro-batch.

    Parameters
    ----------
    generation, number : int
        Of the query, and of the micro-batch.
    rows : int
        Number of its input rows.
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
        """Generation and number, by which micro-batches are ordered."""
        return self.generation, self.number

    @property
    def folder(self) -> str:
        """Folder of its record, below the path."""
        block = f"{self.number // BLOCK:08}"
        return f"{COMMITS}/{_generation(self.generation)}/{block}/{self.number:012}"

    @property
    def text(self) -> str:
        """The record as JSON; `from_text` reads it."""
        return json.dumps({"format": _FORMAT, **asdict(self)})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what another process wrote.

        Raises
        ------
        OutputError
            If it is not such a record, or has an unknown format.
        """
        with _malformed_as_output_error():
            found = _read(text)
            parts = {name: Part(**part) for name, part in found["outputs"].items()}
            planned_ms = found.get("planned_ms")
            return cls(found["generation"], found["number"], found["rows"], parts, planned_ms)


def blocks_from(generation: int, number: int) -> str:
    """Return a glob pattern of the folders with the records of a micro-batch and later ones.

    So not even the names of old ones are read: ``{00000017,0000001[8-9],000000[2-9]?,...}``.
    """
    first = f"{number // BLOCK:08}"
    later = (
        f"{first[:at]}[{int(digit) + 1}-9]{'?' * (len(first) - at - 1)}"
        for at, digit in enumerate(first)
        if digit != "9"
    )
    return f"{COMMITS}/{_generation(generation)}/{{{','.join([first, *later])}}}"


def part_folder(output: str, generation: int, number: int, attempt: str) -> str:
    """Return the folder, below the path, in which an attempt at a micro-batch writes an output."""
    return f"{output}/{_generation(generation)}-{number:012}-{attempt}"


def check_output(output: str, outputs: Iterable[str] = OUTPUTS) -> None:
    """Raise `OutputError` for an output that a path does not hold."""
    if output not in outputs:
        raise OutputError(f"the outputs of a path are {', '.join(outputs)}", value=repr(output))


def _generation(number: int) -> str:
    return f"{number:08}"


def _read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    if found["format"] != _FORMAT:
        rule = f"records beside results have the format {_FORMAT}"
        raise OutputError(rule, value=found["format"])
    return found


@contextmanager
def _malformed_as_output_error() -> Iterator[None]:
    """Raise errors of malformed records as `OutputError`."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError("records beside results must be those that write_stream wrote") from error
