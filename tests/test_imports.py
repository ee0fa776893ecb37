"""What is imported when: nothing with the package, by workers no more than they need."""

from __future__ import annotations

import ast
import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import is_plan_of
from gpu_windows.spark_glue.tasks.workers import MakePartials, RunShards

#: Libraries that take long to import. PyArrow imports pandas for the first array that it makes.
HEAVY = (
    "matplotlib", "numba", "numpy", "obstore", "pandas", "pyarrow", "pyspark", "rich", "sqlglot",
    "typer",
)  # fmt: skip

#: What a worker of sliding windows has no use for.
OTHERS = tuple(
    f"gpu_windows.{room}"
    for room in (
        "checkpointing", "checkpoints", "cli", "datastream", "doctor",
        "kernels.cuda", "monitoring", "operators.row_at_a_time", "operators.joins",
        "operators.matching", "operators.over", "operators.panes", "operators.process",
        "operators.top", "planning.planner", "plots", "runners", "sinks",
        "spark_glue.batch", "spark_glue.dataframes", "spark_glue.streams", "sql.",
    )
)  # fmt: skip

QUERY = """
import gpu_windows as gw
rows = pa.table({"k": ["a"], "ts": pa.array([1], pa.timestamp("us", "UTC"))})
timed = gw.stream(rows).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
windows = timed.key_by("k").window(gw.TumblingEventTimeWindows.of("1 min"))
plan = windows.with_outputs().aggregate(n=gw.count()).plan
"""

TABLE = pa.table(
    {
        "k": pa.array([1, None, 1]),  # as Spark has them: counters cross as rows without a key
        "ts": pa.array([0, 1_000_000, 70_000_000], pa.timestamp("us", "UTC")),
        "v": [1.0, 2.0, 3.0],
    }
)


def fresh(program: str, *arguments: str, data: bytes = b"") -> Any:
    """Run a program in a new process; return what it prints last, as JSON."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], input=data, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return json.loads(ended.stdout.splitlines()[-1])


def modules_after(program: str) -> set[str]:
    """Return the modules that a new process has after a program."""
    return set(fresh(f"{program}\nimport json, sys\nprint(json.dumps([*sys.modules]))"))


def typed_names(module: Any) -> Mapping[str, tuple[str, str]]:
    """Return the names that type checkers see, each with its home and its name there."""
    tree = ast.parse(Path(module.__file__).read_text())
    (block,) = (
        each
        for each in tree.body
        if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"
    )
    return {
        alias.asname or alias.name: (str(node.module).removeprefix("gpu_windows."), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


# ---------------------------------------------------------------------------- the package


def test_the_package_imports_nothing_heavy() -> None:
    there = modules_after("import gpu_windows")
    assert there.isdisjoint(HEAVY)
    own = {name for name in there if name.startswith("gpu_windows")}
    assert own == {"gpu_windows", "gpu_windows.lazy_names", "gpu_windows.sql"}


def test_type_checkers_see_each_name_where_it_is_imported_from() -> None:
    modules = {name: ("gpu_windows", name) for name in gw._MODULES}
    assert typed_names(gw) == {**gw._NAMES.homes, **modules}
    for module in (gw.functions, gw.testing, gw.typing):
        assert typed_names(module) == module._NAMES.homes
        assert module._NAMES.homes.keys() == {*module.__all__} <= {*dir(module)}


def test_there_are_no_more_names_than_one_can_know() -> None:
    counts = [len(module._NAMES.homes) for module in (gw, gw.functions, gw.typing)]
    assert counts[0] <= 80
    assert sum(counts) <= 160


def test_all_public_names_are_there() -> None:
    given = fresh(
        "import json\nbefore = {*globals()}\nfrom gpu_windows import *\n"
        "print(json.dumps(sorted({*globals()} - before - {'before'})))"
    )
    assert {*given} == {*gw.__all__}
    assert gw._NAMES.homes.keys() - {*gw.__all__} == {"MetricsListener"}  # it needs Spark
    assert {*gw.__all__} <= {*dir(gw)}


def test_public_modules_are_there() -> None:
    found = fresh(
        "import json, gpu_windows as gw\n"
        "print(json.dumps([gw.errors.QueryError.__name__, gw.checkpoints.roll_back.__name__]))"
    )
    assert found == ["QueryError", "roll_back"]


def test_a_name_is_looked_up_once() -> None:
    found = fresh(
        "import json, gpu_windows as gw\nbefore = 'Rows' in vars(gw)\nonce = gw.Rows\n"
        "print(json.dumps([before, vars(gw)['Rows'] is once, once.__module__]))"
    )
    assert found == [False, True, "gpu_windows.vocabulary.frames"]


def test_no_package_hides_a_name() -> None:
    """A package takes the place of its name when it is first imported."""
    packages = {info.name for info in iter_modules(gw.__path__)}
    assert packages & gw._NAMES.homes.keys() == {"sql"}
    for first in ("gpu_windows.sql.translate", "gpu_windows.sql.query", "gpu_windows.sql"):
        found = fresh(
            f"import json, {first}, gpu_windows as gw\nfrom gpu_windows import sql\n"
            "print(json.dumps([gw.sql.__qualname__, sql.__module__]))"
        )
        assert found == ["sql", "gpu_windows.sql.query"]


def test_a_wrong_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'windowed'$"):
        _ = gw.windowed  # type: ignore[attr-defined]
    assert not hasattr(gw, "KeyedBatch")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("avg", "did you mean mean"),
        ("countDistinct", "did you mean count_distinct"),
        ("window", "did you mean TumblingEventTimeWindows"),
        ("TumblingEventTimeWindow", "did you mean TumblingEventTimeWindows"),
        ("KeyedProcessFunction", "it is gpu_windows.functions.KeyedProcessFunction"),
        ("Outputs", "it is gpu_windows.typing.Outputs"),
        ("QueryError", "errors are in gpu_windows.errors"),
    ],
)
def test_a_name_that_is_elsewhere_is_told(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}': {hint}$"):
        getattr(gw, name)


def test_a_missing_library_is_named_where_its_name_is_asked_for() -> None:
    found = fresh(
        "import json, sys\nsys.modules['pyspark'] = None\nimport gpu_windows as gw\n"
        "try:\n    gw.MetricsListener\nexcept ImportError as error:\n    said = error.name\n"
        "print(json.dumps([said, gw.count().function]))"
    )
    assert found[0].startswith("pyspark")
    assert found[1] == "count"


def test_classes_cross_by_their_home() -> None:
    thing = gw.CountTrigger.of(3)
    there = fresh(
        "import json, pickle, sys\nthing = pickle.load(sys.stdin.buffer)\n"
        "print(json.dumps([type(thing).__module__, repr(thing)]))",
        data=pickle.dumps(thing),
    )
    assert there == [type(thing).__module__, repr(thing)]


# ---------------------------------------------------------------------------- the driver


def test_a_plan_needs_no_compiler_and_no_spark() -> None:
    there = modules_after(f"import pyarrow as pa\n{QUERY}")
    assert there.isdisjoint({*HEAVY} - {"numpy", "pandas", "pyarrow"})


def test_kernels_are_imported_without_a_compiler() -> None:
    there = modules_after(
        "import pkgutil, importlib, gpu_windows.kernels.cpu as cpu\n"
        "for info in pkgutil.iter_modules(cpu.__path__):\n"
        "    importlib.import_module(f'{cpu.__name__}.{info.name}')"
    )
    assert "gpu_windows.kernels.cpu.matching" in there
    assert there.isdisjoint({"numba", "llvmlite"})


# ---------------------------------------------------------------------------- workers

#: Runs both stages on some rows; prints what was imported before the first batch came, what at the
#: end, and which kernels were loaded.
WORKER = """
import json, pickle, sys
import pyarrow as pa

first, last = pickle.load(sys.stdin.buffer)
before = [*sys.modules]
rows = pa.ipc.open_stream(sys.argv[1]).read_all().to_batches()
results = [*last([*first(rows)])]
from gpu_windows.kernels.compile import Kernel
loaded = {
    value.definition.__name__
    for name, module in [*sys.modules.items()] if name.startswith("gpu_windows.kernels.cpu")
    for value in vars(module).values() if isinstance(value, Kernel) and value._compiled is not None
}
count = sum(batch.num_rows for batch in results)
print(json.dumps([before, [*sys.modules], sorted(loaded), count]))
"""


def test_a_worker_imports_what_its_operator_needs(tmp_path: Path) -> None:
    timed = gw.stream(TABLE).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    windows = gw.SlidingEventTimeWindows.of(timedelta(minutes=2), timedelta(minutes=1))
    options = timed.key_by("k").window(windows).options(device="cpu", shards=1)
    plan = options.with_outputs().aggregate(sum=gw.sum("v"), n=gw.count()).plan
    assert is_plan_of(plan, WindowQuery)
    rows = TABLE.select(plan.input_columns)
    ticks = rows["ts"].cast(pa.int64())
    rows = rows.set_column(rows.column_names.index("ts"), "ts", ticks)
    with pa.ipc.new_stream(tmp_path / "rows", rows.schema) as stream:
        stream.write_table(rows)
    stages = pickle.dumps((MakePartials(plan), RunShards(plan, packed=True)))
    before, after, kernels, count = fresh(WORKER, str(tmp_path / "rows"), data=stages)
    assert count == 6  # 5 windows with rows, and a row of counters
    unwanted = {*HEAVY} - {"numpy", "pandas", "pyarrow", "pyspark"}
    assert unwanted.isdisjoint(before)
    assert (unwanted - {"numba"}).isdisjoint(after)
    assert "numba" in after
    assert [name for name in after if name.startswith(OTHERS)] == []
    assert {"_encode", "_assign"} <= {*kernels}
    assert {"_encode_texts", "_moments", "_insert", "_run", "admit"}.isdisjoint(kernels)
