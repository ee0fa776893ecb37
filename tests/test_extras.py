"""Libraries that extras install: without one, an error has the command that installs it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS: dict[str, list[str]] = tomllib.loads(PYPROJECT.read_text())["project"][
    "optional-dependencies"
]

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
        *(
            pytest.param(*others, marks=pytest.mark.thorough)
            for others in (
                ("datasketches", "sketch", "sketches"),
                ("obstore", "checkpoint", "remote"),
                ("prometheus_client", "metrics", "prometheus"),
                ("adbc_driver_postgresql", "postgres", "postgres"),
                ("matplotlib", "plot", "plots"),
            )
        ),
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


# ---- GPUs


@pytest.mark.parametrize("extra", ["cu", "cudf"])
def test_both_versions_of_cuda_have_the_same_packages(extra: str) -> None:
    of_13 = [re.sub(r"\b(.*cud?a?)13", r"\g<1>12", each) for each in EXTRAS[f"{extra}13"]]
    assert of_13 == EXTRAS[f"{extra}12"]


def test_packages_of_rapids_are_of_one_release() -> None:
    names = re.compile(r"(pylibcudf|cudf|rmm)-cu1[23](?P<bounds>.*)")
    asked = [names.fullmatch(each) for extra in EXTRAS.values() for each in extra]
    bounds = [found["bounds"] for found in asked if found is not None]
    assert len(bounds) == 6
    assert len({*bounds}) == 1


def test_kernels_are_compiled_by_the_same_numba_cuda_with_and_without_a_device() -> None:
    asked = {each for name in ("cu13", "ptx") for each in EXTRAS[name] if "numba-cuda" in each}
    assert len(asked) == 1


def test_cudf_is_not_asked_for_beside_a_pandas_that_it_refuses() -> None:
    """It needs pandas 3; the extra of Spark keeps below."""
    assert any(each.startswith("pandas") and each.endswith("<3") for each in EXTRAS["spark"])
    for name in ("cudf12", "cudf13"):
        assert not any("spark" in each or "pandas" in each for each in EXTRAS[name])
