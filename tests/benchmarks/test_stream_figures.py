"""What the benchmarks of streams say: targets, state, growth, and what processes take."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from benchmarks import processes, soak, suite
from benchmarks.contest import Window
from benchmarks.measure import Measurement
from benchmarks.report import Report
from benchmarks.soak import flatness, growth
from benchmarks.stream_data import StreamData
from benchmarks.verdict import Target, verdict

pytest.importorskip("pyspark", reason="needs the extra `spark`")

TUMBLING = Window.of("1 minute")
SMALL = StreamData(400, 7)


def streamed(name: str, seconds: float, **details: Any) -> Measurement:
    known = {"rows_a_second": 1e6 / seconds, "cpu_s": 3.5, "state_rows": 1_000}
    sizes = {"state_live_bytes": 40_000, "state_held_bytes": 2_000_000, "state_in": "files"}
    return Measurement(name, TUMBLING, (seconds,), details={**known, **sizes, **details})


def test_targets_are_compared_with_what_was_measured() -> None:
    target = Target(of_spark=0.9, rows_a_second=400_000)
    rocksdb = {"state_in": "RocksDB", "state_live_bytes": 90_000}
    made = [streamed("gpu_windows", 2.0), streamed("spark", 3.0, **rocksdb)]
    lines = verdict(target, made)
    assert lines[:2] == [
        "1.50 times spark's rows a second, target 0.9: reached",
        "500,000 rows a second, target 400,000: reached",
    ]
    ours, spark = (line.split("; ", 1)[1] for line in lines[2:])
    assert ours == (
        "live state of 0.0 MB, 40.0 bytes a key and window; state files had up to 2.0 MB"
    )
    assert spark == (
        "state of 0.1 MB in files once compacted, 90.0 bytes a key and window; "
        "RocksDB held up to 2.0 MB"
    )
    missed = verdict(target, [streamed("gpu_windows", 4.0), streamed("spark", 3.0)])
    assert [line.rpartition(" ")[2] for line in missed[:2]] == ["missed", "missed"]
    named = verdict(Target(of_spark=0.9, entry="row"), made)
    assert "40.0 bytes a row; state files" in named[1]
    (alone,) = verdict(Target(of_spark=2.0), [streamed("gpu_windows", 4.0)])
    assert alone.startswith("gpu_windows: 3.50 s of processors a micro-batch")


def test_results_from_before_state_was_in_files_name_rocksdb() -> None:
    made = streamed("gpu_windows", 2.0)
    details = {name: value for name, value in made.details.items() if name != "state_in"}
    (line,) = verdict(Target(of_spark=2.0), [replace(made, details=details)])
    assert line.endswith("0.0 MB in files once compacted; RocksDB held up to 2.0 MB")


def test_details_are_in_the_json_where_there_are_some(tmp_path: Path) -> None:
    made = (streamed("gpu_windows", 2.0), Measurement("spark", TUMBLING, (3.0,)))
    report = Report("stream_tumbling", "about", SMALL, made)
    ours, spark = report.rows()
    assert (ours["rows"], ours["details"]["rows_a_second"]) == (400, 500_000.0)
    assert "details" not in spark
    assert report.write_json(tmp_path).name.startswith("stream_tumbling-400-rows-7-keys-ordered-")


def test_growth_is_from_the_second_third_to_the_last() -> None:
    assert growth([1, 9, 100, 100, 110, 110]) == pytest.approx(0.1)
    assert growth([5.0, 5.0]) is None
    flat, rising = [7] * 9, [1, 2, 3, 4, 5, 6, 7, 8, 9]
    figures = dict.fromkeys(soak.FIGURES, flat)
    details = {**figures, "jvm_bytes": rising, "state_bytes": [21, 35, *flat[2:]]}
    made = Measurement("gpu_windows", TUMBLING, (1.0,), details=details)
    *lines, held = flatness([made])
    assert held == "gpu_windows: RocksDB held at most 5.0 times the live bytes"
    in_files = replace(made, details={**details, "state_in": "files"})
    assert flatness([in_files])[-1].endswith("state files had at most 5.0 times the live bytes")
    by_name = dict(zip(soak.FIGURES, lines, strict=True))
    assert by_name["state_rows"].endswith("flat (+0.0% from the second third to the last)")
    assert by_name["jvm_bytes"] == (
        "gpu_windows: jvm_bytes 1 at first, 9 at last, at most 9: "
        "GROWS (+60.0% from the second third to the last)"
    )


def test_growth_with_the_state_is_shown_as_ratios() -> None:
    benchmark = suite.load("stream_keys")
    seconds = {1: 2.0, 100: 2.2, 1_000: 3.0}
    made = [streamed(f"gpu_windows[slices, {n}x]", s) for n, s in seconds.items()]
    lines = list(benchmark.summary(made))
    assert lines[1:] == ["slices: 1.00 : 1.10 : 1.50; state in MB 0.0 : 0.0 : 0.0"]


def test_processes_are_counted_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    class Process:
        def __init__(self, name: str = "python", rss: int = 5, seconds: float = 1.0) -> None:
            self._name, self._rss, self._seconds = name, rss, seconds

        def name(self) -> str:
            return self._name

        def memory_info(self) -> Any:
            return SimpleNamespace(rss=self._rss)

        def cpu_times(self) -> tuple[float, ...]:
            return (self._seconds, 0.5, 0.25, 0.25, 1e9)  # the last is waiting for disks

        def children(self, *, recursive: bool) -> list[Any]:
            assert recursive
            return [Process("java", 100), Process("python3", 7), Gone(), Process("python3", 8)]

    class Gone(Process):
        def name(self) -> str:
            raise psutil.NoSuchProcess(1)

        def cpu_times(self) -> tuple[float, ...]:
            raise psutil.NoSuchProcess(1)

    monkeypatch.setattr(psutil, "Process", Process)
    assert processes.resident_bytes() == {"jvm": 100, "workers": 15}
    assert processes.cpu_seconds() == 8.0


def test_the_compilers_of_the_jvm_are_counted_by_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Process:
        pid = 7

        def name(self) -> str:
            return "java"

        def children(self, *, recursive: bool) -> list[Any]:
            assert recursive
            return [self]

    for number, name in enumerate(["C1 CompilerThre", "C2 CompilerThre", "GC Thread#0", "a (b) c"]):
        (tmp_path / str(number)).mkdir()
        fields = ["S", *map(str, range(10)), "100", "50", "9"]
        (tmp_path / str(number) / "stat").write_text(f"7 ({name}) {' '.join(fields)}")
    (tmp_path / "9").mkdir()  # it has ended
    monkeypatch.setattr(psutil, "Process", Process)
    monkeypatch.setattr(processes, "_tasks", lambda pid: tmp_path.glob("*"))
    assert processes.compiler_seconds() == 2 * 150 / os.sysconf("SC_CLK_TCK")
