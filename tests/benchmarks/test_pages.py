"""The page of benchmarks and its pictures say what the results that are kept say."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import pages
from benchmarks.plot import made_by


def test_the_page_is_made_of_the_results() -> None:
    assert pages.PAGE.read_text() == pages.page(), "python -m benchmarks.pages writes it anew"


def test_the_pictures_are_made_of_the_results() -> None:
    for path, picture in pages.pictures().items():
        kept = path.read_text()
        if made_by(kept) == made_by(picture):  # else points are elsewhere
            assert kept == picture, f"{path.name}: python -m benchmarks.pages draws it anew"


def test_every_result_stands_under_a_heading_and_every_picture_is_of_one() -> None:
    names = {result.name for result in pages.results()}
    assert set(pages.DRAWN) <= names
    assert len(names) == len(pages.files()) > 0


def test_streams_say_if_they_were_measured_before_state_was_in_files() -> None:
    for result in pages.results():
        is_old = result.name.startswith("stream_") and not pages._has_state_files(result.report)
        assert (pages._WITHOUT_STATE_FILES in pages._section(result)) is is_old


def test_results_of_gpus_are_told_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    assert "No run on a GPU (`make gpu`) is kept yet" in pages.page()
    (tmp_path / "gpu-nvidia-h200.json").write_text("{}")
    assert pages.files() == []
    assert "[a page of their own](gpu.md)" in pages.page()
