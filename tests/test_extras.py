"""Libraries that extras install: without one, an error has the command that installs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from importlib import import_module
for name in sys.argv[1].split(","):
    sys.modules[name] = None  # as if it was not installed
import gpu_windows as gw, pyarrow as pa
rows = gw.stream(pa.table({"k": ["a"], "ts": [1], "v": [1.0]}))
keyed = rows.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps()).key_by("k")
windowed = keyed.window(gw.TumblingEventTimeWindows.of("5 seconds"))
outputs = windowed.with_outputs().aggregate(n=gw.count())
for name, call in {
    "session": lambda: gw.session(),
    "MetricsListener": lambda: gw.MetricsListener(),
    "where": lambda: rows.where("v > 0"),
    "with_columns": lambda: rows.with_columns(w="v + 1"),
    "match": lambda: keyed.match_recognize("F", {"F": "F.v > 1"}).measures(n="COUNT(F.v)"),
    "sql": lambda: gw.sql("SELECT v FROM r", r=rows),
    "sql_script": lambda: gw.sql_script("SELECT v FROM r", r=rows),
    "sketch": lambda: windowed.aggregate(n=gw.approx_count_distinct("v")),
    "checkpoint": lambda: gw.read_state("s3://bucket/folder"),
    "metrics": lambda: gw.MetricsListener().serve(0),
    "postgres": lambda: import_module("gpu_windows.sinks.postgres.writer")._import_driver(),
    "plot": lambda: gw.plot_firings(outputs, pa.table({"k": ["a"], "ts": [1], "v": [1.0]})),
}.items():
    if name in sys.argv[2].split(","):
        try:
            call()
        except gw.errors.MissingExtraError as error:
            print(name, error)
outputs.result()
"""


@pytest.mark.parametrize(
    ("libraries", "uses", "extra"),
    [
        ("pyspark,py4j", "session,MetricsListener", "spark"),
        ("sqlglot", "where,with_columns,match,sql,sql_script", "sql"),
        ("datasketches", "sketch", "sketches"),
        ("obstore", "checkpoint", "remote"),
        ("prometheus_client", "metrics", "prometheus"),
        ("adbc_driver_postgresql", "postgres", "postgres"),
        ("matplotlib", "plot", "plots"),
    ],
)
def test_without_a_library(libraries: str, uses: str, extra: str) -> None:
    command = [sys.executable, "-c", PROGRAM, libraries, uses]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert [*lines] == uses.split(",")
    library = libraries.partition(",")[0]
    for line in lines.values():
        assert line.endswith(
            f" needs {library}, which is missing: pip install 'gpu-windows[{extra}]'"
        )
