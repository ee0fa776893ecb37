"""The notebooks run, and show the outputs that are committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.notebooks import executed, notebooks, shown

#: Bytes of a notebook at most.
_SMALL = 150_000


def _case(path: Path) -> object:
    marks = [pytest.mark.spark] if "gw.session(" in path.read_text() else []
    if path.stem == "stream_live":  # a minute and a half
        marks.append(pytest.mark.slow)
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", [_case(path) for path in notebooks()])
def test_notebook_shows_its_outputs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    kept = nbformat.read(path, as_version=4)
    again = "python -m tests.docs.notebooks keeps what it shows now"
    assert shown(executed(path)) == shown(kept), again


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_notebook_is_small_and_has_been_run(path: Path) -> None:
    text = path.read_text()
    assert len(text) < _SMALL
    assert '"execution_count": null' not in text
