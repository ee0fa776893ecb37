"""Runs one scenario and says what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from gpu_windows.errors import (
    DeviceUnavailableError,
    QueryError,
    UnsupportedQueryError,
)
from gpu_windows.planning.plan import Strategy
from tests.conformance.cases import Case, Skip
from tests.conformance.compare import Difference
from tests.conformance.errors import ScenarioError
from tests.conformance.refusals import refusal_of, rejection_of
from tests.conformance.scenario import Scenario
from tests.conformance.sql_text import sql_text
from tests.conformance.translate import translate


class Status(Enum):
    """What came of a scenario."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Run:
    """What a runner reports of a scenario that it ran.

    ``reasons``: why rows were given back, if any were.
    """

    strategy: Strategy
    differences: tuple[Difference, ...]
    reasons: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Verdict:
    """What came of a scenario, and why.

    Parameters
    ----------
    scenario : Scenario
    status : Status
    reason : str
        Why it was skipped or has failed; empty where it passed.
    strategy : Strategy, optional
        None where nothing was run.
    differences : tuple of Difference
        Empty if the scenario agrees.
    is_user_code : bool
        Whether its window function is user code, run row at a time.
    """

    scenario: Scenario
    status: Status
    reason: str = ""
    strategy: Strategy | None = None
    differences: tuple[Difference, ...] = ()
    is_user_code: bool = False


class Runner(Protocol):
    """Runs scenarios in one way."""

    @property
    def ticks_per_ms(self) -> int:
        """Ticks in the scenario's millisecond."""

    def skips(self, scenario: Scenario) -> str | None:
        """Return why a scenario that we could run is not run; None if it is."""

    def run(self, scenario: Scenario, case: Case) -> Run:
        """Run a scenario and compare."""


def judge(scenario: Scenario, runner: Runner, *, by_text: bool = False) -> Verdict:
    """Run a scenario, unless there is a reason to skip it.

    ``by_text``: statements in SQL are asked as they were recorded, by `gpu_windows.sql`.

    Raises
    ------
    ScenarioError
        If the scenario names something that its format does not know.
    DeviceUnavailableError
        If there is no device to run anything on.
    """
    try:
        return _judge(scenario, runner, by_text=by_text)
    except (ScenarioError, DeviceUnavailableError):
        raise
    except UnsupportedQueryError as error:
        return Verdict(scenario, Status.SKIPPED, f"refused by the planner: {error}")
    except QueryError as error:
        return _refused(scenario, error)
    except Exception as error:  # noqa: BLE001 - a scenario that crashes is a scenario that failed
        return Verdict(scenario, Status.FAILED, f"{type(error).__name__}: {error}")


def _judge(scenario: Scenario, runner: Runner, *, by_text: bool) -> Verdict:
    ticks = runner.ticks_per_ms
    case = sql_text(scenario, ticks) if by_text else translate(scenario, ticks_per_ms=ticks)
    if isinstance(case, Skip):
        return Verdict(scenario, Status.SKIPPED, case.reason)
    reason = runner.skips(scenario)
    if reason is not None:
        return Verdict(scenario, Status.SKIPPED, reason)
    run = runner.run(scenario, case)
    if scenario.expected_error is not None:
        if rejection_of(scenario.expected_error) not in run.reasons:
            reason = f"Flink refuses this, ours runs it: {scenario.expected_error.message}"
    elif run.differences:
        reason = f"differences: {len(run.differences)}"
    return Verdict(
        scenario,
        Status.PASSED if reason is None else Status.FAILED,
        reason or "",
        run.strategy,
        run.differences if scenario.expected_error is None else (),
        case.is_user_code,
    )


def _refused(scenario: Scenario, error: QueryError) -> Verdict:
    """Judge a refusal of ours: Flink must have refused too, for the same rule."""
    ours = f"{type(error).__name__}: {error}"
    if scenario.expected_error is None:
        return Verdict(scenario, Status.FAILED, f"refused, Flink runs it: {ours}")
    wanted = refusal_of(scenario.expected_error)
    if isinstance(error, wanted) or isinstance(error.__cause__, wanted):  # in SQL it has a place
        return Verdict(scenario, Status.PASSED)
    reason = f"Flink's refusal is our {wanted.__name__}, got {ours}"
    return Verdict(scenario, Status.FAILED, reason)
