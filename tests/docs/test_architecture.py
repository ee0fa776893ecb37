"""The page about the inside names files that exist, every room, and is short enough to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gpu_windows"
PAGE = ROOT / "docs" / "architecture.md"
MAX_WORDS = 1500
#: Files and folders: in code, or at the start of a column of the diagram.
_NAMES = re.compile(r"(?:`|^|  )((?:[\w*]+/)*(?:[\w*]+\.py|(?<=/)[\w*]*))(?=[`\s])", re.MULTILINE)


def _found_in(folder: Path, name: str) -> list[Path]:
    return [
        path for path in folder.glob(name.rstrip("/")) if not name.endswith("/") or path.is_dir()
    ]


def _paths(text: str) -> Iterator[tuple[str, list[Path]]]:
    """Yield every name of the page and what it names, by the rule that the page states."""
    before = PACKAGE
    for name in _NAMES.findall(text):
        of_operators = [*(PACKAGE / "operators").glob(f"*/{name}")] if name == "stored*.py" else []
        bases = (PACKAGE, ROOT) if "/" in name else (before,)
        found = of_operators or [path for base in bases for path in _found_in(base, name)]
        yield name, found
        if found:
            before = found[0] if found[0].is_dir() else found[0].parent


def test_named_files_exist() -> None:
    names = [*_paths(PAGE.read_text())]
    assert len(names) > 150, "the pattern finds the names of the page"
    assert [name for name, found in names if not found] == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`planning/plan.py`, `query.py`", []),
        ("`planning/plan.py`, `stream.py`", ["stream.py"]),
        ("`planing/plan.py`", ["planing/plan.py"]),
        ("`kernels/*/modules.py`, `operators/nothing/`", ["operators/nothing/"]),
        ("a\n  v\nrunners/absent.py   text", ["runners/absent.py"]),
    ],
)
def test_missing_files_are_found(text: str, missing: list[str]) -> None:
    assert [name for name, found in _paths(text) if not found] == missing


def test_every_room_is_named() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    named = {path for _, found in _paths(PAGE.read_text()) for path in found}
    assert {room for room in rooms if PACKAGE / room not in named} == set()


def test_page_is_short() -> None:
    assert len(PAGE.read_text().split()) <= MAX_WORDS
