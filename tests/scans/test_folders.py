"""Drawn folders are read as they were written, in any splits, and so are rows of conditions."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.scans.trial import try_local


@examples(30)
@given(st.integers(0, 1 << 20))
def test_a_folder_is_read_as_it_was_written(seed: int) -> None:
    with TemporaryDirectory() as folder:
        assert not try_local(seed, Path(folder) / "rows")
