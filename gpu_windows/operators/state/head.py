"""The head of an operator's state: numbers by name, and an index of its other tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.state.store import Contents, Store

#: Kind and bucket of the head.
HEAD = ("head", 0)
#: How the names of numbers end that say how much the other tables hold.
HELD = " held"


def load_head(store: Store, names: Sequence[str]) -> tuple[list[int], pa.Table] | None:
    """Return numbers in the order of their names, and the index; None if nothing was saved.

    Raises
    ------
    StateCorruptedError, StateVersionError
        See `Store.load_first`.
    """
    index = store.load_first(*HEAD)
    if index is None:
        return None
    return numbers_of(index, names), index


def numbers_of(head: pa.Table, names: Sequence[str]) -> list[int]:
    """Return the numbers of a head, in the order of their names.

    Raises
    ------
    StateCorruptedError
        If it does not tell one: another operator's is there.
    """
    told = head.schema.metadata or {}
    missing = [name for name in names if name.encode() not in told]
    if missing:
        rule = "the head of an operator's state tells what the operator asks for"
        raise StateCorruptedError(rule, value=f"nothing of {', '.join(missing)}")
    return [int(told[name.encode()]) for name in names]


def held_of(head: pa.Table) -> dict[str, int]:
    """Return how much the other tables hold, by what is counted."""
    numbers = {name.decode(): text for name, text in (head.schema.metadata or {}).items()}
    return {n.removesuffix(HELD): int(text) for n, text in numbers.items() if n.endswith(HELD)}


def head_contents(head: pa.Table) -> Contents:
    """Tell how much the other tables hold, where the head says it; else how long its index is."""
    return Contents(held_of(head) or {"entries": len(head)})


def save_head(store: Store, numbers: Mapping[str, int], index: pa.Table) -> None:
    """Keep numbers and an index, with the metadata that it has."""
    texts = {name.encode(): str(number).encode() for name, number in numbers.items()}
    store.save(*HEAD, index.replace_schema_metadata({**(index.schema.metadata or {}), **texts}))
