"""``gpu-windows doctor``: checks of the installation, with advice how to fix it."""

from __future__ import annotations

from rich.console import Console

from gpu_windows.doctor.finding import Finding, Status, as_json, installed_version, show
from gpu_windows.doctor.gpu import gpu_findings
from gpu_windows.doctor.host import host_findings
from gpu_windows.doctor.spark import probe_spark, spark_findings

__all__ = ["Finding", "Status", "examine", "run"]


def examine(*, spark: bool = True) -> list[Finding]:
    """Run every check.

    Parameters
    ----------
    spark : bool
        Whether to start Spark and look into its workers (some seconds).
    """
    pyspark = installed_version("pyspark")
    findings = [*host_findings(pyspark), *gpu_findings()]
    if spark and pyspark is not None:
        findings += spark_findings(probe_spark())
    return findings


def run(*, spark: bool = True, json: bool = False, console: Console | None = None) -> int:
    """Run every check and report.

    Parameters
    ----------
    spark : bool
        See `examine`.
    json : bool
        Whether to write JSON instead of a table.
    console : Console, optional
        Where to write.

    Returns
    -------
    int
        The exit status: 1 if a check failed, else 0.
    """
    console = Console() if console is None else console
    with console.status("Looking around", spinner="dots"):
        findings = examine(spark=spark)
    if json:
        console.print(as_json(findings), soft_wrap=True, markup=False, highlight=False)
    else:
        show(console, findings)
    return int(any(finding.status is Status.FAIL for finding in findings))
