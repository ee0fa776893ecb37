"""Texts beside results: by Spark, and on a disk of this machine without it."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from gpu_windows.commits.path_log import file_system

local_texts = pytest.importorskip("gpu_windows.spark_glue.files.local_marker_files")
texts = pytest.importorskip("gpu_windows.spark_glue.files.marker_files")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "owners/00000000"


def test_a_text_is_put_where_none_is(tmp_path: Path) -> None:
    folder = tmp_path / "commits" / "1"
    assert local_texts.read_local_markers(folder) == []
    assert local_texts.write_local_marker(folder, "one")
    assert not local_texts.write_local_marker(folder, "other")
    assert local_texts.read_local_markers(folder) == ["one"]
    assert [file.name.partition("-")[0] for file in folder.iterdir()] == ["part"]


def test_one_of_many_that_write_at_once_does(tmp_path: Path) -> None:
    for number in range(20):
        folder, start = tmp_path / str(number), Barrier(8)

        def put(text: str, folder: Path = folder, start: Barrier = start) -> bool:
            start.wait()
            return bool(local_texts.write_local_marker(folder, text))

        with ThreadPoolExecutor(8) as pool:
            put_ = list(pool.map(put, "abcdefgh"))
        assert sum(put_) == 1
        assert local_texts.read_local_markers(folder) == ["abcdefgh"[put_.index(True)]]
        assert len(list(folder.iterdir())) == 1, "no draft is left"


def test_a_disk_without_links_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    with pytest.raises(PermissionError):
        local_texts.write_local_marker(tmp_path, "one")
    assert list(tmp_path.iterdir()) == []


def test_a_text_is_on_the_disk_before_its_name_and_its_name_before_we_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, link, calls = os.fsync, os.link, []

    def noted_sync(descriptor: int) -> None:
        calls.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    def noted_link(draft: Path, name: Path) -> None:
        assert calls == [str(draft)], "the text first"
        link(draft, name)
        calls[:] = ["link"]

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "link", noted_link)
    (tmp_path / "commits").mkdir()
    for folder, parents in (("commits/0/1", ["commits/0", "commits"]), ("commits/0/2", None)):
        calls.clear()
        assert local_texts.write_local_marker(tmp_path / folder, "one")
        above = parents or ["commits/0"]
        assert calls == ["link", *(str(tmp_path / each) for each in (folder, *above))]


def test_a_disk_that_syncs_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    assert local_texts.write_local_marker(tmp_path / "1", "one")
    assert local_texts.read_local_markers(tmp_path / "1") == ["one"]


def test_what_a_writer_left_that_died_does_not_count(tmp_path: Path) -> None:
    (tmp_path / ".part-0.txt").write_text("on")
    (tmp_path / "part-0.txt").touch()
    (tmp_path / "_SUCCESS").touch()
    assert local_texts.read_local_markers(tmp_path) == []
    assert local_texts.write_local_marker(tmp_path, "one")
    assert local_texts.read_local_markers(tmp_path) == ["one"]


def test_either_finds_what_the_other_wrote(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a [b]% ü c"
    assert texts.write_marker(spark, str(path / FOLDER), "of Spark")
    for given in (str(path), f"file:{path}", f"{path}/"):
        assert local_texts.find_local_folder(spark, given, FOLDER, "of Spark") == path
    assert local_texts.find_local_folder(spark, str(path), FOLDER, "of another") is None
    found = texts.files_of(spark, texts.literal(f"{path}/{FOLDER}"))
    (uri,) = {file.rpartition("/owners/")[0] for file in found}
    assert file_system(uri)[1] == str(path)
    assert not local_texts.write_local_marker(path / FOLDER, "of this machine")
    assert local_texts.write_local_marker(path / "commits", "of this machine")
    assert texts.read_markers(spark, texts.literal(str(path / "commits"))) == ["of this machine"]
    assert not texts.write_marker(spark, str(path / "commits"), "of Spark")
