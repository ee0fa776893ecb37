"""The command ``gpu-windows sql``: results, files, and what it says of bad input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from gpu_windows.cli import app
from gpu_windows.column_types.local_times import instants_of
from tests.docs.setups import times

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
SELECT origin, window_start, COUNT(*) AS n, AVG(delay) AS mean
FROM TUMBLE(TABLE flights, DESCRIPTOR(ts), INTERVAL '1' HOUR)
GROUP BY origin, window_start, window_end
"""
EXPECTED = [("EWR", 0, 1, 2.0), ("JFK", 0, 2, 1.0), ("JFK", 60, 1, 7.0)]


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    rows = {
        "origin": ["JFK", "EWR", "JFK", "JFK"],
        "ts": times(61, 5, 20, 0),  # in no order: files are waited for to their end
        "delay": [7.0, 2.0, None, 1.0],
        "day": [1, 1, 1, 1],
    }
    path = tmp_path / "flights.parquet"
    pq.write_table(pa.table(rows), path)
    return path


def ask(*arguments: object, text: str | None = None) -> Result:
    said = ["sql", *map(str, arguments)]
    return CliRunner().invoke(app, said, env={"COLUMNS": "160"}, input=text)


def tables(path: Path, *more: object) -> list[object]:
    return ["--table", f"flights={path}", "--event-time", "ts", *more]


def rows(path: Path) -> list[tuple[str, int, int, float | None]]:
    first = times(0)[0].value
    return sorted(
        (row["origin"], (row["window_start"] - first) // 60_000_000, row["n"], row["mean"])
        for row in _in_ticks(pq.read_table(path)).to_pylist()
    )


def _in_ticks(table: pa.Table) -> pa.Table:
    start = table["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return table.set_column(table.column_names.index("window_start"), "window_start", start)


def refused(rule: str, *arguments: object) -> None:
    result = ask(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("bad input: ")
    assert rule in result.stderr
    assert "Traceback" not in result.stderr


def test_results_are_shown_as_a_table(flights: Path) -> None:
    result = ask("--query", QUERY, *tables(flights))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.split()[:4] == ["origin", "window_start", "n", "mean"]
    assert ["EWR", "2026-01-01", "00:00:00+00:00", "1", "2.0"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    assert "more" not in result.stdout


def test_rows_are_limited_and_the_rest_is_counted(flights: Path) -> None:
    result = ask("--query", QUERY, *tables(flights, "--rows", 1))
    assert result.stdout.count("2026-01-01") == 1
    assert "2 more rows" in result.stdout


def test_the_text_is_in_a_file_or_the_standard_input(flights: Path, tmp_path: Path) -> None:
    file = tmp_path / "query.sql"
    file.write_text(QUERY)
    by_option = ask("--query", QUERY, *tables(flights))
    assert ask(file, *tables(flights)).stdout == by_option.stdout
    assert ask("-", *tables(flights), text=QUERY).stdout == by_option.stdout


def test_results_go_to_a_file(flights: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    result = ask("--query", QUERY, *tables(flights, "--output", output))
    assert result.exit_code == 0
    assert result.stdout == f"3 rows in {output}\n"
    assert rows(output) == EXPECTED


def test_a_table_is_a_folder_or_csv_too(flights: Path, tmp_path: Path) -> None:
    folder, output = tmp_path / "folder", tmp_path / "out.parquet"
    folder.mkdir()
    whole = pq.read_table(flights)
    pq.write_table(whole.slice(0, 1), folder / "0.parquet")
    pq.write_table(whole.slice(1), folder / "1.parquet")
    csv.write_csv(whole, tmp_path / "flights.csv")
    for path in (folder, tmp_path / "flights.csv"):
        result = ask("--query", QUERY, *tables(path, "--output", output))
        assert (result.exit_code, result.stderr) == (0, "")
        assert rows(output) == EXPECTED


#: Files in the manner of public ones: text, time, and the hours of New York that rows are in.
PUBLIC = {
    "taxi": (
        "VendorID,tpep_pickup_datetime,fare\n1,2024-03-10 01:57:55,17.7\n2,2024-03-10 02:30:00,1\n",
        "tpep_pickup_datetime",
        ["06:00", "07:00"],
    ),
    "flights": (
        "carrier,time_hour,delay\nUA,2013-01-01T10:00:00Z,2\nAA,2013-01-01T11:00:00Z,NA\n",
        "time_hour",
        ["10:00", "11:00"],
    ),
    "weather": ("STATION,DATE,TMP\n7,2023-01-01T00:51:00,8.9\n7,2023-01-01T01:51:00,\n", "DATE",
                ["05:00", "06:00"]),
    "bikes": ("ride,at\nA,2024-11-03 01:30:00.123\nB,2024-11-03 01:30:00.000\n", "at", ["05:00"]),
    "ticks": ("symbol,time,price\nX,2024-01-02 09:30:00.000000001,1.5\n", "time", "microseconds"),
    "logs": ("host,time,bytes\n1,10/Oct/2000:13:55:36 -0700,2\n", "time", "convert strings"),
    "epoch": ("k,ts\na,1704067200\n", "ts", "timestamp_seconds"),
    "daily": ("symbol,date\nX,2024-01-02\n", "date", "convert dates"),
}  # fmt: skip
PER_HOUR = """SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(`{time}`),
INTERVAL '1' HOUR) GROUP BY window_start, window_end"""


def check_public(name: str, folder: Path, *more: str) -> None:
    text, time, wanted = PUBLIC[name]
    (folder / "part=1").mkdir()
    (folder / "part=1" / "a.csv").write_text(text)
    output, query = folder / "out.parquet", PER_HOUR.format(time=time)
    for path in (folder / "part=1" / "a.csv", folder / "part=1", folder):
        said = ("--query", query, "--table", f"t={path}", "--event-time", time, *more)
        zoned = ask(*said, "--time-zone", "America/New_York", "--output", output)
        if isinstance(wanted, str):
            assert zoned.exit_code == 2
            assert wanted in zoned.stderr
            continue
        assert (zoned.exit_code, zoned.stderr) == (0, "")
        starts = sorted(_in_ticks(pq.read_table(output))["window_start"].to_pylist())
        output.unlink()
        assert [f"{start // 3_600_000_000 % 24:02}:00" for start in starts] == wanted
        if "Z" not in text:
            unzoned = ask(*said, "--output", output)
            assert (unzoned.exit_code, unzoned.stderr) == (0, "")
            clocks = pq.read_table(output)["window_start"]
            assert clocks.type == pa.timestamp("us")
            of_clocks = instants_of(clocks.combine_chunks(), "America/New_York")
            assert sorted(of_clocks.cast(pa.int64()).to_pylist()) == starts
            output.unlink()


@pytest.mark.parametrize("name", PUBLIC)
def test_files_in_the_manner_of_public_ones(name: str, tmp_path: Path) -> None:
    check_public(name, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PUBLIC)
def test_the_same_files_on_spark(name: str, tmp_path: Path, spark: SparkSession) -> None:
    assert spark.version
    check_public(name, tmp_path, "--runner", "spark")


def test_partitions_of_folders_are_columns(tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "a.csv").write_text(f"k,ts\na,2024-01-0{day} 12:00:00\n")
    text = """SELECT day, COUNT(*) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)
    GROUP BY day, window_start, window_end"""
    said = ("--query", text, "--table", f"t={tmp_path}", "--event-time", "ts", "--time-zone", "UTC")
    result = ask(*said, "--output", tmp_path / "out.parquet")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [(row["day"], row["n"]) for row in rows] == [(1, 1), (2, 1)]
    bad = ask(*said[:-1], "Mars/Olympus")
    assert (bad.exit_code, "a time zone is one of" in bad.stderr) == (2, True)


def test_a_table_may_have_a_time_of_its_own(flights: Path, tmp_path: Path) -> None:
    other = tmp_path / "landed.parquet"
    landed = pq.read_table(flights).rename_columns(["origin", "at", "delay", "day"])
    pq.write_table(landed, other)
    text = """SELECT f.origin, l.at FROM flights AS f JOIN landed AS l ON f.origin = l.origin
    AND l.at BETWEEN f.ts AND f.ts + INTERVAL '20' MINUTES"""
    more = ("--table", f"landed={other}", "--event-time", "landed=at")
    result = ask("--query", text, *tables(flights, *more))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.count("2026-01-01") == 5


def test_explain_runs_nothing(flights: Path) -> None:
    result = ask("--query", QUERY, *tables(flights, "--explain"))
    assert result.exit_code == 0
    assert ".window(gw.TumblingEventTimeWindows.of('1 h'))" in result.stdout
    assert "strategy  slices" in result.stdout
    assert "2026" not in result.stdout


def test_bad_input_is_refused_without_a_traceback(flights: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_text("no Parquet")
    asked = ("--query", QUERY)
    refused("as --query TEXT", *tables(flights))
    refused("as --query TEXT", "query.sql", *asked, *tables(flights))
    refused("No such file", tmp_path / "missing.sql", *tables(flights))
    refused("cannot be read as parquet", *asked, *tables(tmp_path / "missing.parquet"))
    refused("cannot be read as parquet", *asked, *tables(broken))
    refused("give a table as NAME=PATH", *asked, "--table", flights)
    again = ("--table", f"flights={flights}")
    refused("two tables have the same name", *asked, *tables(flights, *again))
    refused("one event time", *asked, *tables(flights, "--event-time", "day"))
    refused(
        "names a table that is not given", *asked, *tables(flights, "--event-time", "flight=ts")
    )
    refused("there is no such table", *asked)
    refused("needs an event time", *asked, "--table", f"flights={flights}")
    refused("no/such", *asked, *tables(flights, "--output", "no/such/out.parquet"))


def test_mistakes_in_the_query_have_their_place(flights: Path) -> None:
    text = QUERY.replace("AVG(delay)", "AVG(late)")
    refused("there is no such column", "--query", text, *tables(flights))
    refused("line 2, position 49 of the SQL", "--query", text, *tables(flights))
    text = QUERY.replace("AVG(delay)", "1 / (COUNT(*) - 1)")
    refused("divide by zero", "--query", text, *tables(flights))


def test_a_time_that_is_none_is_refused(flights: Path) -> None:
    timed = ("--table", f"flights={flights}", "--event-time", "delay")
    refused("event time must be TIMESTAMP", "--query", QUERY, *timed)


def test_spark_gives_the_same(spark: SparkSession, flights: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    result = ask("--query", QUERY, *tables(flights, "--runner", "spark", "--output", output))
    assert (result.exit_code, result.stderr) == (0, "")
    assert rows(output) == EXPECTED
    text = QUERY.replace("AVG(delay)", "no_such_function(COUNT(*))")
    refused("got no_such_function", "--query", text, *tables(flights, "--runner", "spark"))
    assert spark.range(1).count() == 1  # the session that was there is left alone


SCRIPT = """
CREATE TABLE flights (origin STRING, ts TIMESTAMP_LTZ(3), delay DOUBLE, WATERMARK FOR ts AS ts)
  WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet');
CREATE TABLE hours (origin STRING, n BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet');
INSERT INTO hours SELECT origin, COUNT(*) FROM TUMBLE(TABLE flights, DESCRIPTOR(ts),
  INTERVAL '1' HOUR) GROUP BY origin, window_start, window_end;
SELECT origin, delay FROM flights WHERE delay > 1;
"""


def test_a_script_writes_what_it_inserts_and_prints_what_it_selects(
    flights: Path, tmp_path: Path
) -> None:
    path = tmp_path / "script.sql"
    path.write_text(SCRIPT.format(path=flights, out=tmp_path / "out"))
    asked = ask("--script", path, "--rows", 1)
    assert asked.exit_code == 0
    assert "hours: 3 rows in" in asked.output
    assert "JFK" in asked.output
    assert "1 more rows" in asked.output
    again = ask("--script", "-", text=path.read_text())
    assert again.exit_code == 2
    explained = ask("--script", path, "--explain")
    assert "-- INSERT INTO hours" in explained.output


def test_tables_of_a_script_may_be_files(flights: Path) -> None:
    text = SCRIPT.format(path="/nowhere", out="/nowhere").partition("CREATE TABLE hours")[0]
    asked = ask("--script", "-", "--table", f"flights={flights}", text=f"{text} SELECT 1 AS x")
    assert asked.exit_code == 0, asked.output


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--script", "-", "--query", "SELECT 1"], "or a --script"),
        (["--query", "SELECT 1", "--checkpoint", "/x"], "a stream is a --script"),
        (["--script", "-", "--event-time", "ts"], "has its event times"),
        (["--script", "-"], "line 1, position 1"),
    ],
)
def test_bad_arguments_of_a_script(arguments: list[str], rule: str) -> None:
    asked = ask(*arguments, text="ALTER TABLE t")
    assert asked.exit_code == 2
    assert rule in asked.output


@pytest.mark.spark
def test_a_script_runs_as_a_stream(spark: SparkSession, flights: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    flights.rename(folder / "flights.parquet")
    path, text = tmp_path / "script.sql", SCRIPT.format(path=folder, out=tmp_path / "out")
    path.write_text(f"SET 'execution.runtime-mode' = 'batch';{text}")
    asked = ask("--script", path, "--runner", "spark")
    assert asked.exit_code == 0, asked.output
    assert "hours: 3 rows in" in asked.output
    assert spark.range(1).count() == 1
