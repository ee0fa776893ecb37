"""The head of an operator's state: numbers by name, and an index of its other tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from gpu_windows.operators.state.store import Store

#: What a store calls it.
HEAD = "head"
_WHERE = (HEAD, 0)


def load_head(store: Store, names: Sequence[str]) -> tuple[list[int], pa.Table] | None:
    """Return numbers in the order of their names, and the index; None if nothing was saved.

    Raises
    ------
    StateCorruptedError, StateVersionError
        See `Store.load_first`.
    """
    index = store.load_first(*_WHERE)
    if index is None:
        return None
    return [int(index.schema.metadata[name.encode()]) for name in names], index


def save_head(store: Store, numbers: Mapping[str, int], index: pa.Table) -> None:
    """Keep numbers and an index, with the metadata that it has."""
    texts = {name.encode(): str(number).encode() for name, number in numbers.items()}
    store.save(*_WHERE, index.replace_schema_metadata({**(index.schema.metadata or {}), **texts}))
