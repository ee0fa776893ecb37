"""Strings on the device, with Arrow in the place of pylibcudf: what it is asked, and its errors."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import texts
from tests.operators.columns.key_batches import codes_of, encoder_of
from tests.operators.columns.pretend_texts import PretendLibrary

CUDA = backend.select("cuda")

COLUMN = pa.array(["b", None, "a", "b", "", None])

#: What is called of pylibcudf: its file, class and function, and the parameters that are named.
CALLED = {
    ("column", "Column", "from_arrow"): {"obj", "stream"},
    ("column", "Column", "to_arrow"): {"stream"},
    ("column", "Column", "data"): set[str](),
    ("column", "Column", "offset"): set[str](),
    ("column", "Column", "size"): set[str](),
    ("table", "Table", "__init__"): {"columns"},
    ("table", "Table", "columns"): set[str](),
    ("transform", "", "encode"): {"input", "stream"},
}


def test_distinct_strings_come_in_the_order_of_their_first_appearance() -> None:
    def encode(values: pa.Array) -> Any:
        assert values.equals(pa.array(["b", None, "a", ""]))
        return np.arange(7, 7 + len(values))

    with PretendLibrary().used():
        found = CUDA.keys.texts(COLUMN, encode)
    assert CUDA.to_host(found).tolist() == [7, 8, 9, 7, 10, 8]


def test_memory_that_no_array_uses_makes_room_for_strings() -> None:
    library = PretendLibrary()
    library.failures = 1
    with library.used():
        assert codes_of([[COLUMN]], CUDA) == codes_of([[COLUMN]])
    assert library.calls == 2


def test_without_room_the_host_encodes_strings_to_the_same_codes() -> None:
    library, encoder = PretendLibrary(), encoder_of([[COLUMN, COLUMN]])
    with library.used():
        first = encoder.encode([COLUMN.slice(2), COLUMN.slice(2)], CUDA).tolist()
        library.failures = 4  # of either column, twice
        later = encoder.encode([COLUMN, COLUMN], CUDA).tolist()
        assert library.failures == 0
        assert encoder.encode([COLUMN, COLUMN]).tolist() == later
        assert encoder.encode([COLUMN, COLUMN], CUDA).tolist() == later
    assert later[2:] == first


def test_others_than_plain_strings_are_the_hosts() -> None:
    with PretendLibrary().used():
        assert CUDA.keys.texts(COLUMN.dictionary_encode(), np.arange) is None
        encoder = encoder_of([[COLUMN]])
        assert encoder.encode([COLUMN.dictionary_encode()], CUDA).tolist() == [1, 0, 2, 1, 3, 0]


def test_without_the_library_strings_are_the_hosts() -> None:
    assert texts.library() is None
    assert CUDA.keys.texts(COLUMN, np.arange) is None


@pytest.mark.parametrize("called", CALLED, ids=".".join)
def test_pylibcudf_has_what_is_called(called: tuple[str, str, str]) -> None:
    """By its stub files: it cannot be imported without a driver."""
    found = find_spec("pylibcudf")
    if found is None or found.submodule_search_locations is None:
        pytest.skip("needs pylibcudf, of the extras `cu12` and `cu13`")
    file, owner, function = called
    body = ast.parse(Path(found.submodule_search_locations[0], f"{file}.pyi").read_text()).body
    for node in body if owner else ():
        if isinstance(node, ast.ClassDef) and node.name == owner:
            body = node.body
    (made,) = (n for n in body if isinstance(n, ast.FunctionDef) and n.name == function)
    assert CALLED[called] <= {argument.arg for argument in made.args.args}
