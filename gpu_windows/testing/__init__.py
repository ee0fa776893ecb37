"""Test queries of yours: with rows, watermarks and a clock by hand, and against each other.

`harness` runs a query step by step, as Flink's test harnesses do; `assert_rows` compares tables and
shows what differs; `assert_runs_agree` runs a query on Arrow, Spark batch and a stream. The fixture
`spark_session` needs pytest, which nothing else here imports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_windows.lazy_names import LazyNames

if TYPE_CHECKING:
    from gpu_windows.testing.agreement import assert_runs_agree
    from gpu_windows.testing.fixtures import spark_session
    from gpu_windows.testing.query_harness import Harness, Snapshot, harness
    from gpu_windows.testing.rows import assert_rows

_NAMES = LazyNames(
    __name__,
    {
        "testing.agreement": "assert_runs_agree",
        "testing.fixtures": "spark_session",
        "testing.query_harness": "Harness Snapshot harness",
        "testing.rows": "assert_rows",
    },
)

if not TYPE_CHECKING:  # else no name would be a wrong one

    def __getattr__(name: str) -> Any:
        return _NAMES.load(name)


def __dir__() -> list[str]:
    return _NAMES.list_names()


__all__ = [
    "Harness", "Snapshot", "assert_rows", "assert_runs_agree", "harness", "spark_session",
]  # fmt: skip
