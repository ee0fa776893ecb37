"""Files that came by --py-files; `tests.cluster.test_shipping` runs a stream of such a package."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkFiles

from gpu_windows.spark_glue.session.worker_python import add_py_files


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Spark's folder of such files, on the path as Spark has it."""
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    monkeypatch.setattr(sys, "path", [sys.path[0], str(tmp_path), *sys.path[1:]])
    return tmp_path


def shown(before: dict[str, str]) -> dict[str, str]:
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(environment={**before}))
    for _ in range(2):  # of two queries
        add_py_files(session)
    found: dict[str, str] = session.sparkContext.environment
    return found


def test_zip_files_and_modules_are_shown(root: Path) -> None:
    for name in ("package.zip", "module.py", "table.csv"):
        (root / name).touch()
    sys.path.insert(1, str(root / "package.zip"))
    wanted = [str(root / "package.zip"), str(root)]
    assert shown({}) == {"PYTHONPATH": os.pathsep.join(wanted)}
    found = shown({"PYTHONPATH": "/users", "X": "1"})
    assert found == {"PYTHONPATH": os.pathsep.join([*wanted, "/users"]), "X": "1"}


def test_without_python_files_nothing_changes(root: Path) -> None:
    (root / "table.csv").touch()
    (root / "wheels").mkdir()
    sys.path.insert(1, str(root / "wheels"))
    assert shown({"X": "1"}) == {"X": "1"}


def test_spark_connect_has_no_context() -> None:
    add_py_files(SimpleNamespace())  # type: ignore[arg-type]
