"""Files of the product are short enough to be read at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Folders of the product; links to two of them are not followed.
FOLDERS = ("gpu_windows", "kernels", "spark_glue")
MAX_LINES = 400


def _lengths(folders: Iterable[Path]) -> Mapping[Path, int]:
    files = (file for folder in folders for file in folder.rglob("*.py"))
    return {file: len(file.read_text().splitlines()) for file in files}


def _too_long(folders: Iterable[Path]) -> list[str]:
    return [f"{file}: {n} lines" for file, n in _lengths(folders).items() if n > MAX_LINES]


def test_no_file_is_too_long() -> None:
    folders = [ROOT / name for name in FOLDERS]
    assert len(_lengths(folders)) > 500
    assert _too_long(folders) == [], "cut it in two along a concept, a name for each"


@pytest.mark.parametrize(("lines", "is_too_long"), [(MAX_LINES, False), (MAX_LINES + 1, True)])
def test_long_files_are_found(tmp_path: Path, lines: int, *, is_too_long: bool) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "some.py").write_text("x = 1\n" * lines)
    assert bool(_too_long([tmp_path])) == is_too_long
