"""Constants of the state of a shard that tests make small, so that a few rows exercise all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

import pytest
from hypothesis import strategies as st

from gpu_windows.operators.state import (
    hashes,
    keyed_table,
    log,
    manifest,
    merge_input,
    row_buffer,
    runs,
    state_file_writer,
)

#: Module and name of a constant, and values that tests give it.
_VALUES: tuple[tuple[ModuleType, str, tuple[int, ...]], ...] = (
    (keyed_table, "_BLOCK_BYTES", (1, 500, 24_000)),
    (keyed_table, "_LARGE_BYTES", (1, 1 << 20)),
    (keyed_table, "_MERGED_BYTES", (1, 1_000, 1 << 23)),
    (keyed_table, "_SLACK", (0, 3, 4_096)),
    (keyed_table, "_OFTEN", (1, 2, 4)),
    (row_buffer, "_BLOCK_BYTES", (1, 300, 24_000)),
    (row_buffer, "_LARGE_BYTES", (1, 1 << 20)),
    (row_buffer, "_DUE_BLOCKS", (1, 2, 2_000)),
    (merge_input, "_PART_BYTES", (1, 1_000, 1 << 23)),
    (runs, "_MIN_FILTERED", (1, 2, 16)),
    (hashes, "_BLOCKS", (1, 4)),
    (hashes, "_KEYS", (1, 4, 16_384)),
    (log, "_SMALL_RUN", (1, 1 << 15)),
    (manifest, "_TAIL", (24, 1 << 13)),
    (state_file_writer, "MERGE_FANIN", (2, 3, 8)),
    (state_file_writer, "_FIRST_CLASS_BITS", (1, 10, 18)),
)
_MODULES = {module.__name__: module for module, _, _ in _VALUES}

#: Module and name of constants to their values.
Constants = Mapping[tuple[str, str], int]


def constants() -> st.SearchStrategy[Constants]:
    """Return a strategy of small constants."""
    return st.fixed_dictionaries(
        {(module.__name__, name): st.sampled_from(values) for module, name, values in _VALUES}
    )


@contextmanager
def with_constants(values: Constants) -> Iterator[None]:
    """Have the state of a shard work with some constants."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in values.items():
            patch.setattr(_MODULES[module], name, value)
        yield


@contextmanager
def with_small_blocks(together: int = 2) -> Iterator[None]:
    """Have a row a block, filters of all runs, and as many runs of a size become one."""
    smallest = {(module.__name__, name): values[0] for module, name, values in _VALUES}
    with with_constants({**smallest, (state_file_writer.__name__, "MERGE_FANIN"): together}):
        yield
