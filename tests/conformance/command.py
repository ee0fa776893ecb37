"""The command ``python -m tests.conformance``: from paths to an exit status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from rich.text import Text

from gpu_windows.errors import DeviceUnavailableError, UnsupportedQueryError
from gpu_windows.vocabulary.options import Device, Engine, Options, Partials
from tests.conformance.errors import ScenarioError
from tests.conformance.report import print_report, write_json
from tests.conformance.scenario import Scenario, read_scenario, scenario_files
from tests.conformance.verdict import Runner, Status, Verdict, judge

if TYPE_CHECKING:
    from tests.conformance.batch import BatchRunner
    from tests.conformance.streaming_query import StreamingQueryRunner

OK, FAILURE, BAD_INPUT = 0, 1, 2


@dataclass(frozen=True)
class Request:
    """What the command line asked for.

    Parameters
    ----------
    paths : tuple of Path
        Scenario files, and folders that hold some.
    runner : {"local", "batch", "streaming", "streaming-query"}
        Who runs the scenarios.
    engine : {"auto", "reference"}
        "reference" runs row at a time whatever could be compiled.
    device : {"cpu", "cuda"}
        Where kernels run.
    partials : {"auto", "kernels", "spark"}
        Who makes partials on Spark batch.
    json : Path, optional
        File for the results.
    by_text : bool
        Whether statements are asked by their SQL.
    """

    paths: tuple[Path, ...]
    runner: str
    engine: Engine
    device: str
    partials: Partials
    json: Path | None
    by_text: bool = False

    @property
    def engine_name(self) -> str:
        """The engine as the command line names it."""
        return "reference" if self.engine == "reference" else "kernels"

    @property
    def options(self) -> Options:
        """The options of the queries."""
        device: Device = "cpu" if self.device == "cpu" else "cuda"
        return Options(device=device, engine=self.engine, partials=self.partials)


def run_request(request: Request) -> int:
    """Run the scenarios, print the report, and return the exit status.

    0 if none failed, 1 if one failed, 2 if something could not be read or there is no device.
    """
    errors = Console(stderr=True)
    scenarios, unreadable = _read(request.paths, errors)
    if not scenarios:
        _complain(errors, "no scenario was found")
        return BAD_INPUT
    try:
        verdicts, unknown = _judge_all(scenarios, request, errors)
    except (DeviceUnavailableError, UnsupportedQueryError) as error:
        _complain(errors, str(error))
        return BAD_INPUT
    print_report(verdicts, Console())
    if request.json is not None:
        how = {"runner": request.runner, "engine": request.engine_name}
        write_json(verdicts, request.json, **how, device=request.device)
    if any(verdict.status is Status.FAILED for verdict in verdicts):
        return FAILURE
    return BAD_INPUT if unreadable or unknown else OK


def _read(paths: Sequence[Path], errors: Console) -> tuple[list[Scenario], int]:
    """Read all scenario files; what is none is named, counted and left out."""
    scenarios, unreadable = [], 0
    for path in scenario_files(list(paths)):
        try:
            scenarios.append(read_scenario(path))
        except ScenarioError as error:
            _complain(errors, str(error))
            unreadable += 1
    return scenarios, unreadable


def _judge_all(
    scenarios: Sequence[Scenario], request: Request, errors: Console
) -> tuple[list[Verdict], int]:
    verdicts, unknown = [], 0
    with _runner(request) as runner:
        for scenario in track(scenarios, "Replaying", console=errors, transient=True):
            try:
                verdicts.append(judge(scenario, runner, by_text=request.by_text))
            except ScenarioError as error:
                _complain(errors, f"{scenario.path}: {error}")
                unknown += 1
    return verdicts, unknown


@contextmanager
def _runner(request: Request) -> Iterator[Runner]:
    if request.runner == "local":
        from tests.conformance.local import LocalRunner

        yield LocalRunner(request.options)
    elif request.runner == "streaming":
        from tests.conformance.streaming import StreamingRunner

        yield StreamingRunner(request.options)
    else:
        on_spark = _on_spark(request)
        try:
            yield on_spark
        finally:
            on_spark.close()


def _on_spark(request: Request) -> BatchRunner | StreamingQueryRunner:
    if request.runner == "batch":
        from tests.conformance.batch import BatchRunner

        return BatchRunner(request.options)
    from tests.conformance.streaming_query import StreamingQueryRunner

    return StreamingQueryRunner(request.options)


def _complain(errors: Console, message: str) -> None:
    errors.print(Text(f"bad input: {message}"), soft_wrap=True)
