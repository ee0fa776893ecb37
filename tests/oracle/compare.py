"""Compares two folders of recorded runs, family by family.

Strict: nothing is permuted. So this is for two outputs of the oracle, or for the oracle against the
golden files. An implementation is tested by ``python -m tests.conformance``, which knows the ties.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

#: What Flink made of a scenario, without what was said about the run.
RESULTS = {"expected", "side", "late", "expected_error"}
_COUNTED = ("files", "same bytes", "same results", "different", "missing")


@dataclass(frozen=True)
class Compared:
    """A file of the first folder and its namesake in the second.

    ``fields`` are the top-level fields in which they differ; None if there is no namesake.
    """

    family: str
    name: str
    same_bytes: bool
    fields: tuple[str, ...] | None

    @property
    def counts(self) -> Counter[str]:
        """What it counts as."""
        missing = self.fields is None
        different = not RESULTS.isdisjoint(self.fields or ())
        return Counter(
            {
                "files": 1,
                "same bytes": int(self.same_bytes),
                "same results": int(not missing and not different),
                "different": int(different),
                "missing": int(missing),
            }
        )


def differing_fields(first: bytes, second: bytes) -> tuple[str, ...]:
    """Return the top-level fields in which two files differ; none if only their layout does."""
    one, other = json.loads(first), json.loads(second)
    return tuple(
        name
        for name in {**one, **other}
        if (name in one, one.get(name)) != (name in other, other.get(name))
    )


def compare(first: Path, second: Path, families: Iterable[str]) -> Iterator[Compared]:
    """Yield every ``first/<family>/<name>.json`` with what differs in ``second``."""
    for family in families:
        for path in sorted((first / family).glob("*.json")):
            other = second / family / path.name
            if not other.exists():
                yield Compared(family, path.stem, False, None)
                continue
            one, two = path.read_bytes(), other.read_bytes()
            fields = () if one == two else differing_fields(one, two)
            yield Compared(family, path.stem, one == two, fields)


def agree(compared: Iterable[Compared]) -> bool:
    """Whether there is something, all of it is in both folders, and its results are the same."""
    total = sum((each.counts for each in compared), Counter[str]())
    return total["files"] > 0 and total["same results"] == total["files"]


def table_of(compared: Iterable[Compared]) -> Table:
    """Return the counts of every family, and of all."""
    by_family: dict[str, Counter[str]] = {}
    for each in compared:
        by_family.setdefault(each.family, Counter()).update(each.counts)
    table = Table("family", *_COUNTED)
    for family, counts in by_family.items():
        table.add_row(family, *(str(counts[name]) for name in _COUNTED))
    table.add_section()
    total = sum(by_family.values(), Counter[str]())
    table.add_row("all", *(str(total[name]) for name in _COUNTED))
    return table
