"""The text of Spark's plans is read as it is printed, whoever else prints meanwhile."""

import sys
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gpu_windows.spark_glue.dataframes.plan_text import read_plan_text


def test_the_text_has_all_plans_and_is_not_printed(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    text = read_plan_text(spark.readStream.format("rate").load().where("value > 17"))
    assert "== Analyzed Logical Plan ==" in text
    assert "StreamingRelation" in text
    assert "value" in text
    assert capsys.readouterr().out == ""


def test_what_other_threads_print_meanwhile_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Explained:
        def explain(self, mode: str) -> None:
            other = Thread(target=lambda: sys.stdout.write("of another thread\n"))
            other.start()
            other.join()
            sys.stdout.write(f"plan, {mode}\n")

    assert read_plan_text(Explained()) == "plan, extended\n"  # type: ignore[arg-type]
    assert capsys.readouterr().out == "of another thread\n"


def test_an_error_of_spark_leaves_stdout_as_it_was() -> None:
    class Failing:
        def explain(self, mode: str) -> None:
            raise RuntimeError(mode)

    before = sys.stdout
    with pytest.raises(RuntimeError, match="extended"):
        read_plan_text(Failing())  # type: ignore[arg-type]
    assert sys.stdout is before


def test_another_thread_that_captures_meanwhile_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It restores what it found, which is ours, after ours was taken away."""
    kept: list[Any] = []

    class Explained:
        def explain(self, mode: str) -> None:
            kept.append(sys.stdout)
            sys.stdout.write(f"plan, {mode}\n")

    before = sys.stdout
    assert read_plan_text(Explained()) == "plan, extended\n"  # type: ignore[arg-type]
    sys.stdout = kept[0]
    try:
        sys.stdout.write("later\n")
        assert sys.stdout.encoding == before.encoding
    finally:
        sys.stdout = before
    assert capsys.readouterr().out == "later\n"
