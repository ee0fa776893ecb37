"""Files of a micro-batch are compared with its commit; what is missing is said, or skipped."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_windows.commits.completeness import check_generations, check_missing, select_files
from gpu_windows.commits.records import Commit, Part
from gpu_windows.errors import OutputError, QueryError

COMMIT = Commit(0, 7, 9, {"late": Part("late/x", 5)})


def select(files: dict[str, int | None], missing: Any = "raise") -> list[str]:
    return select_files("out", COMMIT, "late", files, missing)


def test_all_that_was_written_is_read() -> None:
    assert select({"b": 2, "a": 3}) == ["a", "b"]
    assert select({"a": 5, "b": 0}) == ["a", "b"]
    assert select({"a": 5, "b": None}, "skip") == ["a"]


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({}, r"has written 5 rows of the output late, .* have 0 now.*got out/late/x: no file"),
        ({"a": 3}, r"micro-batch 7 .* have 3 now: .*missing=\"skip\", got out/late/x: a has 3"),
        ({"a": 3, "b": None}, "a has 3, b cannot be read"),
    ],
)
def test_what_is_missing_is_an_error_or_skipped(files: dict[str, Any], text: str) -> None:
    with pytest.raises(OutputError, match=text):
        select(files)
    assert select(files, "skip") == [name for name, rows in files.items() if rows is not None]


@pytest.mark.parametrize("missing", ["raise", "skip"])
def test_more_than_was_written_is_an_error(missing: str) -> None:
    """A file that was copied would give its rows twice."""
    with pytest.raises(OutputError, match=r"have 10 now.*Put them back, got"):
        select({"a": 5, "a copy": 5}, missing)


def test_what_missing_may_be() -> None:
    for missing in ("raise", "skip"):
        check_missing(missing)
    for other in ("ignore", None, True):
        with pytest.raises(QueryError, match='missing is "raise" or "skip", got'):
            check_missing(other)


def test_texts_of_all_queries_are_needed() -> None:
    check_generations("out", [0, 1, 2])
    with pytest.raises(OutputError, match="out: no generation 0, 2"):
        check_generations("out", [1, 3])
