"""The inputs of a query, in order: Spark's offsets belong to positions, not to inputs.

A checkpoint has the offsets of a first source, of a second one, and so on. Inputs that swap
positions would each resume from the offsets of another: rows are read again, or never.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Self


@dataclass(frozen=True)
class InputFacts:
    """The facts that identify an input of a query.

    Parameters
    ----------
    name : str or None
        The user's name of it.
    shape : str
        A digest of its columns, their types, and which one is the event time.
    sources : tuple of str
        A digest of each of Spark's sources that it reads, in Spark's order; empty if unknown.
    """

    name: str | None
    shape: str
    sources: tuple[str, ...]

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Self:
        """Read what `as_json` returns."""
        return cls(facts["name"], facts["shape"], tuple(facts["sources"]))

    @property
    def as_json(self) -> dict[str, Any]:
        """The facts as a JSON value."""
        return {**asdict(self), "sources": list(self.sources)}


def find_moved_inputs(before: Sequence[InputFacts], after: Sequence[InputFacts]) -> Iterator[str]:
    """Yield a description of each sign that inputs were replaced or reordered.

    An input may be read from another location, and get a name or lose it. It may not be at the
    position of another one: by its name, by its sources, or, if both are new, by its columns.
    Yields nothing if the earlier inputs are unknown.
    """
    if not before:
        return
    if len(before) != len(after):
        yield f"inputs were {_describe_inputs(before)}, are {_describe_inputs(after)}"
        return
    yield from _by_name(before, after)
    yield from _by_source(before, after)
    yield from _by_shape(before, after)


def merge_inputs(
    before: Sequence[InputFacts], after: Sequence[InputFacts]
) -> tuple[InputFacts, ...]:
    """Return the facts of inputs at a later start, completed by those of an earlier one."""
    if not before:
        return tuple(after)
    return tuple(
        InputFacts(is_.name or was.name, is_.shape, is_.sources or was.sources)
        for was, is_ in zip(before, after, strict=True)
    )


def _by_name(before: Sequence[InputFacts], after: Sequence[InputFacts]) -> Iterator[str]:
    positions = {each.name: at for at, each in enumerate(before) if each.name is not None}
    for at, (was, is_) in enumerate(zip(before, after, strict=True)):
        if is_.name is None or is_.name == was.name:
            continue
        if was.name is not None:
            yield f"input {at + 1} was {was.name}, is {is_.name}"
        elif is_.name in positions:
            yield f"input {at + 1} is {is_.name}, which was input {positions[is_.name] + 1}"


def _by_source(before: Sequence[InputFacts], after: Sequence[InputFacts]) -> Iterator[str]:
    was, is_ = (list(chain.from_iterable(e.sources for e in each)) for each in (before, after))
    if was and is_ and len(was) != len(is_):
        yield f"sources of Spark's were {len(was)}, are {len(is_)}"
        return
    moved = [at for at, each in enumerate(is_) if each != was[at] and each in was] if was else []
    for at in moved:
        yield f"source {at + 1} reads what source {was.index(is_[at]) + 1} read"


def _by_shape(before: Sequence[InputFacts], after: Sequence[InputFacts]) -> Iterator[str]:
    pairs = list(enumerate(zip(before, after, strict=True)))
    unsure = [at for at, (was, is_) in pairs if not _is_same(was, is_)]
    was, is_ = ([each[at].shape for at in unsure] for each in (before, after))
    if was != is_ and sorted(was) == sorted(is_):
        at = next(at for at, one, other in zip(unsure, was, is_, strict=True) if one != other)
        origin = unsure[was.index(after[at].shape)]
        yield f"input {at + 1} has the columns that input {origin + 1} had"


def _is_same(was: InputFacts, is_: InputFacts) -> bool:
    """Whether an input is known to be the same as before."""
    by_source = bool(was.sources) and was.sources == is_.sources
    return by_source or (was.name is not None and was.name == is_.name)


def _describe_inputs(inputs: Sequence[InputFacts]) -> str:
    return f"{len(inputs)} ({', '.join(each.name or 'without a name' for each in inputs)})"
