"""Logs of sources of files: which they are, whose offset is whose, what is needed of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpoints.source_logs import FileLog, find_file_logs, find_log_offsets
from gpu_windows.errors import CheckpointError

KAFKA, RATE = '{"topic":{"0":7}}', "3"


def entry(path: str, batch: int) -> str:
    return json.dumps({"path": path, "timestamp": 1, "batchId": batch})


def make_log(root: Path, place: int, *names: str) -> LocalFiles:
    """Write the log of a source of files; an entry has a checksum, and a compact one all."""
    folder = root / "sources" / str(place)
    folder.mkdir(parents=True)
    for name in names:
        last = int(name.partition(".")[0])
        first = 0 if name.endswith("compact") else last
        lines = [entry(f"s3a://bucket/{number}", number) for number in range(first, last + 1)]
        (folder / name).write_text("\n".join(["v1", *lines]))
        (folder / f".{name}.crc").write_bytes(b"crc")
    return LocalFiles(str(root))


def record(*offsets: str) -> bytes:
    return "\n".join(["v1", "{}", *offsets]).encode()


def at(number: int) -> str:
    return json.dumps({"logOffset": number})


def find(root: Path, number: int, *records: bytes, sources: int = 4) -> dict[int, int] | None:
    logs = find_file_logs(LocalFiles(str(root)), sources)
    return find_log_offsets(dict(enumerate(records)), number, logs)


def test_sources_of_other_kinds_have_no_log(tmp_path: Path) -> None:
    make_log(tmp_path, 2, "0", "1")
    for place, text in enumerate(
        [b"v1\n1795804396041", b"\0v1\n" + KAFKA.encode(), b"", b"\xff\xff"]
    ):
        folder = tmp_path / "sources" / str(place if place < 2 else place + 1)
        folder.mkdir()
        (folder / "0").write_bytes(text)
    (tmp_path / "sources" / "5" / "offsets").mkdir(parents=True)
    assert [*find_file_logs(LocalFiles(str(tmp_path)), 7)] == [2]


@pytest.mark.parametrize(
    ("places", "records", "offsets"),
    [
        ([0], [record(at(3)), record(at(4))], {0: 3}),
        ([0, 1], [record(at(3), at(7)), record(at(4), at(8))], {0: 3, 1: 7}),
        ([1], [record(KAFKA, at(2)), record(KAFKA, at(4))], {1: 2}),
        ([0, 2], [record(at(2), RATE, at(5)), record(at(2), RATE, at(6))], {0: 2, 2: 5}),
        ([0], [record("-", RATE), record(at(0), RATE)], {0: -1}),
        ([0], [record("-"), record("-")], {0: -1}),  # it has noted a file, and then died
        ([], [record(KAFKA), record(KAFKA)], {}),
        # one source is mentioned twice
        ([0], [record(at(3), at(3)), record(at(4), at(4))], {0: 3}),
        ([0, 1], [record(at(3), at(3), at(5)), record(at(4), at(4), at(5))], {0: 3, 1: 5}),
        ([1], [record(RATE, RATE, at(5)), record(RATE, RATE, at(6))], {1: 5}),
        # it cannot be told which
        ([0, 1], [record(at(3), at(3), at(3)), record(at(4), at(4), at(4))], None),
        ([0, 1], [record(at(3), at(4), at(5)), record(at(4), at(5), at(6))], None),
        ([0], [record(at(3)), record(at(4), at(4))], None),
        ([0], [b"v2\n{}\n" + at(3).encode()] * 2, None),
        ([0], [record("{}"), record("{")], None),
    ],
)
def test_whose_offset_is_whose(
    tmp_path: Path, places: list[int], records: list[bytes], offsets: dict[int, int] | None
) -> None:
    for place in places:
        make_log(tmp_path, place, "0")
    assert find(tmp_path, 0, *records) == offsets
    assert find(tmp_path, -1, *records) == dict.fromkeys(places, -1)


def log_of(root: Path, *names: str) -> FileLog:
    (log,) = find_file_logs(make_log(root, 0, *names), 1).values()
    return log


def names(found: list[str]) -> list[str]:
    return [each.rpartition("/")[2] for each in found if not each.endswith(".crc")]


def test_entries_since_the_last_compact_one_are_needed(tmp_path: Path) -> None:
    log = log_of(tmp_path, "8", "9.compact", "10", "11", "12", "19.compact", "20")
    assert [*map(names, log.split(11))] == [
        ["8", "9.compact", "10", "11"], ["20", "19.compact", "12"]
    ]  # fmt: skip
    assert names(log.split(19)[0])[-1] == "19.compact"
    assert names(log.split(-1)[1]) == ["20", "19.compact", "12", "11", "10", "9.compact", "8"]
    for last, gone in ((8, 0), (13, 13), (18, 13), (21, 21)):
        with pytest.raises(CheckpointError, match=f"sources/0/{gone} is not there"):
            log.split(last)


def test_a_checksum_goes_before_its_file(tmp_path: Path) -> None:
    log = log_of(tmp_path, "0", "1", "9.compact")
    assert [name.rpartition("/")[2] for name in log.split(0)[1]] == [
        ".9.compact.crc", "9.compact", ".1.crc", "1"
    ]  # fmt: skip


def test_files_that_a_compact_entry_repeats_may_be_gone(tmp_path: Path) -> None:
    """They were read before; those that come again must be there."""
    folder = tmp_path / "sources" / "0"
    folder.mkdir(parents=True)
    (folder / "8").write_text(f"v1\n{entry((tmp_path / 'gone').as_uri(), 8)}")
    lines = [entry((tmp_path / "gone").as_uri(), 8), entry((tmp_path / "a b").as_uri(), 9)]
    (folder / "9.compact").write_text("\n".join(["v1", *lines]))
    (log,) = find_file_logs(LocalFiles(str(tmp_path)), 1).values()
    with pytest.raises(CheckpointError, match=r"must still exist, got .*/a b"):
        log.check_inputs(8)
    (tmp_path / "a b").touch()
    log.check_inputs(8)
    with pytest.raises(CheckpointError, match=r"must still exist, got .*/gone"):
        log.check_inputs(7)
