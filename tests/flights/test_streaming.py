"""The streaming demo: reports of flights, what is told of them, the check against batch."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from examples.flights import board, early, flights, replay, stages, streaming
from examples.flights.__main__ import app
from examples.flights.early import Check, Early
from gpu_windows.commits.records import RESULT, Commit, Part, part_folder
from gpu_windows.errors import GpuWindowsError
from gpu_windows.monitoring.progress import QueryMetrics
from gpu_windows.operators.counters import Counters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = pd.Timedelta(days=28)
FIRST = pd.Timestamp("2013-01-03", tz="UTC")
NUMBERS = ["departures", "mean_delay", "max_delay"]


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    try:
        file = flights.cached_flights(folder=tmp_path_factory.mktemp("flights"))
    except flights.FlightsUnavailableError as error:
        pytest.skip(str(error))
    return pd.read_parquet(file)


# ---- the reports


def test_reports_come_soon_after_departures_or_weeks_later(year: pd.DataFrame) -> None:
    reports = replay.reported(year, 12)
    assert reports.equals(replay.reported(year, 12))
    assert list(reports["week"].unique()) == list(range(12))
    departed = reports[reports["dep"].notna()]
    week = (departed["dep"] - pd.Timestamp("2013-01-01", tz=flights.ZONE)) // pd.Timedelta(days=7)
    behind = departed["week"] - week
    assert behind.min() == 0
    assert behind.max() == 3
    assert 0.005 < (behind > 0).mean() < 0.03
    out_of_order = departed["dep"].diff() < pd.Timedelta(0)
    assert 0.2 < out_of_order.mean() < 0.6
    in_time = departed[behind == 0]
    known = len(year[year["dep"] < pd.Timestamp("2013-03-26", tz=flights.ZONE)])
    assert 0.97 < len(in_time) / known < 1


def test_a_file_holds_a_week(year: pd.DataFrame, tmp_path: Path) -> None:
    reports = replay.reported(year, 3)
    files = replay.write(reports, tmp_path / "new" / "in")
    by_time = sorted((tmp_path / "new" / "in").iterdir(), key=lambda file: file.stat().st_mtime)
    assert files == by_time
    assert [len(pq.read_table(file)) for file in files] == [
        int((reports["week"] == week).sum()) for week in range(3)
    ]
    assert pq.read_schema(files[0]).names == replay.COLUMNS


# ---- the comparison


def windows(**changes: Any) -> pd.DataFrame:
    """Results of three windows that follow one another."""
    starts = [FIRST + number * SIZE for number in range(3)]
    columns: dict[str, Any] = {
        "origin": "JFK",
        "carrier": "B6",
        "window_start": starts,
        "window_end": [start + SIZE for start in starts],
        "departures": [100, 200, 50],
        "mean_delay": [10.0, 20.0, 5.0],
        "max_delay": [30, 40, 6],
    }
    return pd.DataFrame({**columns, **changes})


NOW = (FIRST + 2 * SIZE).to_pydatetime()
LATE = pd.DataFrame({"origin": ["JFK"], "carrier": ["B6"], "dep": [FIRST + 1.5 * SIZE]})
GOOD = Check(complete=1, same=1, touched=1, short=1, unknown=0, open=1)


def fired(**changes: Any) -> pd.DataFrame:
    """What a stream fires of them: of the second one a row was late, the third one is open."""
    final = windows(departures=[100, 199, 50]).assign(
        firing=1, timing=["on_time", "on_time", "early"]
    )
    first = windows(departures=[40, 80, 20]).assign(firing=0, timing="early", mean_delay=[8, 24, 3])
    return pd.concat([first, final.assign(**changes)], ignore_index=True)


def test_final_results_are_those_of_batch_but_for_late_rows() -> None:
    found = early.check(fired(), LATE, windows(), NOW)
    assert found == GOOD
    assert found.is_good


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (fired(mean_delay=[10.5, 20.0, 5.0]), replace(GOOD, same=0)),
        (fired(max_delay=[31, 40, 6]), replace(GOOD, same=0)),
        (fired(departures=[100, 200, 50]), replace(GOOD, short=0)),
        (fired(timing=["on_time", "on_time", "on_time"]), replace(GOOD, unknown=1)),
        (fired(carrier=["B6", "B6", "XX"], timing="on_time"), replace(GOOD, unknown=1)),
        (fired(timing=["early", "on_time", "early"]), replace(GOOD, same=0)),
    ],
)
def test_what_differs_is_found(results: pd.DataFrame, expected: Check) -> None:
    found = early.check(results, LATE, windows(), NOW)
    assert found == expected
    assert not found.is_good


def test_a_window_of_late_rows_only_has_no_result() -> None:
    batch = windows(departures=[100, 1, 50])
    results = fired()
    results = results[results["window_start"] != FIRST + SIZE]
    assert early.check(results, LATE, batch, NOW) == GOOD


def test_early_results_against_final_ones() -> None:
    assert early.early(fired(), 150) == [Early(1, 1, 80 / 199, 4.0)]
    assert early.early(fired(), 100) == [Early(1, 2, np.median([0.4, 80 / 199]), 3.0)]


# ---- what is shown


def shown(renderable: Any) -> str:
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(renderable)
    return console.export_text()


def write(folder: Path, number: int, rows: pd.DataFrame) -> Commit:
    """Write results; `complete` says that they are there."""
    part = Part(part_folder(RESULT, 0, number, "0a1b2c3d"), len(rows))
    (folder / part.folder).mkdir(parents=True)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    pq.write_table(table, folder / part.folder / "part.parquet")
    return Commit(0, number, 0, {RESULT: part})


def complete(folder: Path, commit: Commit) -> None:
    made = folder / commit.folder
    made.mkdir(parents=True)
    (made / "part-0.txt").write_text(commit.text)


def test_the_board_shows_the_last_results_of_the_latest_window(tmp_path: Path) -> None:
    table = board.Board(tmp_path)
    assert shown(table).strip() == ""
    results = fired()
    complete(tmp_path, write(tmp_path, 9, results.iloc[[0, 2]]))
    text = shown(table)
    assert "28 Feb–27 Mar 2013" in text
    assert "B6" not in text  # too few departures
    complete(tmp_path, write(tmp_path, 10, results.iloc[[5]]))
    last = windows(departures=[0, 0, 70]).assign(firing=2, timing="on_time")
    commit = write(tmp_path, 11, last)
    assert "JFK B6 early, 2. 50 5.0 6" in " ".join(shown(table).split())
    complete(tmp_path, commit)
    assert "JFK B6 final 70 5.0 6" in " ".join(shown(table).split())


SUMMARY = board.Summary(
    metrics=QueryMetrics("flights", counters=Counters(rows=1_000, late=7, null_timestamp=11)),
    seconds=4.0,
    timings={"early": 23, "on_time": 2},
    early=[Early(1, 2, 0.4, 3.25)],
    check=GOOD,
    late=Path("/out/late"),
)


def test_the_summary_tells() -> None:
    console = Console(file=io.StringIO(), width=120, record=True)
    board.show(console, SUMMARY)
    text = " ".join(console.export_text().split())
    for part in (
        "rows in 1,000 in 4.0 s, 250 a second",
        "never departed 11",
        "late 7,",
        "early results 23",
        "final results 2",
        "windows still open 1",
        "equal to batch 1 of 1",
        "short of late rows 1 of 1",
        "1. 2 40% 3.2 min",
        "Late rows: /out/late",
    ):
        assert part in text


# ---- the run


@pytest.mark.thorough
def test_the_stream_agrees_with_batch(
    spark: SparkSession, year: pd.DataFrame, tmp_path: Path
) -> None:
    some = year[year["carrier"].isin(["B6", "UA", "HA"])]
    reports = replay.reported(some, 6)
    replay.write(reports, tmp_path / "in")
    stale = tmp_path / "out" / Commit(0, 77, 0, {}).folder
    stale.mkdir(parents=True)
    console = Console(file=io.StringIO(), width=120, record=True)
    summary = streaming.compute(
        spark, tmp_path / "in", tmp_path / "out", device="cpu", console=console
    )
    assert summary.check.is_good
    assert summary.check.touched > 0 < summary.check.complete
    assert summary.check.open > 0
    counters = summary.metrics.counters
    assert counters.rows == len(reports)
    assert counters.null_timestamp == reports["dep"].isna().sum()
    assert sum(summary.timings.values()) == counters.fired
    assert summary.timings["early"] > summary.timings["on_time"] > 0
    assert [each.number for each in summary.early] == [1, 2, 3]
    assert summary.early[0].share < summary.early[-1].share
    assert not stale.exists()
    given_back = pa.concat_tables(map(pq.read_table, summary.late.glob("*/*.parquet")))
    reasons = given_back["rejection_reason"].to_pylist()
    assert reasons.count("late") == counters.late > 0
    assert console.export_text().count("rows in ") == summary.metrics.batches == 6


@pytest.mark.parametrize("check", [GOOD, replace(GOOD, same=0)])
def test_another_answer_is_an_error(
    year: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Check
) -> None:
    class Session:
        stopped = False

        def stop(self) -> None:
            self.stopped = True

    session, summary = Session(), replace(SUMMARY, check=check)
    file = tmp_path / "flights.parquet"
    year.head(5_000).to_parquet(file)
    monkeypatch.setattr(flights, "cached_flights", lambda **_: file)
    monkeypatch.setattr(stages, "session", lambda: session)
    monkeypatch.setattr(streaming, "compute", lambda *_, **__: summary)
    console = Console(file=io.StringIO(), width=120, record=True)
    if check.is_good:
        assert streaming.run(tmp_path, weeks=1, console=console) == summary
    else:
        with pytest.raises(GpuWindowsError, match="those of a batch query"):
            streaming.run(tmp_path, weeks=1, console=console)
    assert session.stopped
    text = console.export_text()
    assert "4 weeks" in text
    assert "Summary" in text


def test_the_command_line_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, str]] = []
    monkeypatch.setattr(streaming, "run", lambda output, *, device: asked.append((output, device)))
    runner = CliRunner()
    assert runner.invoke(app, ["--streaming"]).exit_code == 0
    assert runner.invoke(app, ["--streaming", "--output", "x", "--device", "cpu"]).exit_code == 0
    assert asked == [(streaming.OUTPUT, "auto"), (Path("x"), "cpu")]
