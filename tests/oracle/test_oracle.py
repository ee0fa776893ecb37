"""The oracle, as far as it needs no Flink: what it asks, and how it compares answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.conformance.cases import Case, Skip
from tests.conformance.scenario import read_scenario
from tests.conformance.translate import translate
from tests.golden import (
    generate_kernels,
    generate_parity,
    generate_processes,
    generate_sql_matches,
    generate_sql_on_time,
    generate_twins,
)
from tests.oracle import __main__ as oracle
from tests.oracle.compare import agree, compare
from tests.oracle.families import FAMILIES, scenario
from tests.oracle.scenarios import text, write
from tests.oracle.words import WORDS

GOLDEN = Path(__file__).parents[1] / "golden"


def _answered(asked: dict[str, Any]) -> str:
    """Return a scenario as if Flink had emitted nothing."""
    return text({**asked, "expected": [], "late": []})


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_what_is_asked_is_a_scenario_that_we_can_run(family: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.json"
    for index in range(30):
        path.write_text(_answered(scenario(3, index, (family,))))
        read = read_scenario(path)
        case = translate(read, ticks_per_ms=1)
        skipped = isinstance(case, Skip)
        assert skipped or isinstance(case, Case)
        assert not skipped or "two phases" in getattr(case, "reason", "")
        assert len(read.records) >= 20


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_asks_different_things(family: str) -> None:
    asked = [scenario(3, index, (family,)) for index in range(30)]
    part = "input" if family == "temporal_sort" else "operator"  # a sort has no parameters
    assert len({json.dumps(each[part]) for each in asked}) > 5


def test_a_scenario_depends_on_its_seed_and_number_alone() -> None:
    first = [scenario(7, index) for index in range(20)]
    assert [scenario(7, index) for index in reversed(range(20))] == first[::-1]
    assert all(scenario(8, index)["input"] != one["input"] for index, one in enumerate(first))


def test_streams_have_what_windows_must_bear() -> None:
    records = [scenario(1, index, ("tumbling",)) for index in range(40)]
    late, tied, astray = 0, 0, 0
    for one in records:
        reached, seen = -(2**63), set()
        for element in one["input"]:
            if "watermark" in element:
                astray += element["watermark"] <= reached
                reached = max(reached, element["watermark"])
            elif "ts" in element:
                late += element["ts"] <= reached
                tied += element["ts"] in seen
                seen.add(element["ts"])
    assert min(late, tied, astray) > 20


def test_files_are_laid_out_like_golden_ones(tmp_path: Path) -> None:
    asked = scenario(7, 0)
    (path,) = write([asked], tmp_path)
    assert path.relative_to(tmp_path) == Path(asked["family"]) / f"{asked['name']}.json"
    assert json.loads(path.read_text()) == asked
    assert len(path.read_text().splitlines()) == len(asked["input"]) + 4 + len(asked) - 1


@pytest.mark.parametrize(
    "scenarios",
    [
        lambda: generate_kernels.scenarios(11, generate_kernels.COUNTS),
        generate_sql_on_time.scenarios,
        generate_twins.twins,
        generate_parity.scenarios,
        generate_processes.scenarios,
        generate_sql_matches.scenarios,
    ],
    ids=["kernels", "sql_on_time", "twins", "parity", "processes", "sql_matches"],
)
def test_recorded_runs_are_of_what_is_generated(
    scenarios: Callable[[], Iterator[dict[str, Any]]],
) -> None:
    generated = list(scenarios())
    families = {asked["family"] for asked in generated}
    assert len(generated) == sum(len(list((GOLDEN / each).glob("*.json"))) for each in families)
    for asked in generated:
        path = GOLDEN / asked["family"] / f"{asked['name']}.json"
        recorded = json.loads(path.read_text())
        assert {name: recorded.get(name) for name in asked} == asked


@pytest.mark.parametrize("name", WORDS)
def test_the_format_describes_each_function_as_its_scenarios_do(name: str) -> None:
    told = WORDS[name].partition(f" rules: {WORDS['rules']}")[0]
    assert f"* `{name}`: {told}" in (GOLDEN / "FORMAT.md").read_text()


# ---- comparing


def _spoil(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / "bounds_sum.json"
        fields = json.loads(path.read_text())
        change(fields)
        path.write_text(json.dumps(fields))

    return spoil


def _other_layout(folder: Path) -> None:
    _spoil(lambda fields: None)(folder)


def _other_check(folder: Path) -> None:
    _spoil(lambda fields: fields.update(checked_against_public_api_run="not run"))(folder)


def _other_result(folder: Path) -> None:
    _spoil(lambda fields: fields["expected"][0].update(result=4711))(folder)


def _other_order(folder: Path) -> None:
    _spoil(lambda fields: fields["expected"].reverse())(folder)


def _now_refused(folder: Path) -> None:
    _spoil(lambda fields: fields.update(expected_error={"class": "x", "message": "y"}))(folder)


def _nothing_late(folder: Path) -> None:
    _spoil(lambda fields: fields.update(late=[]))(folder)


def _missing(folder: Path) -> None:
    (folder / "bounds_sum.json").unlink()


SAME = [_other_layout, _other_check]
DIFFERENT = [_other_result, _other_order, _now_refused, _nothing_late, _missing]


@pytest.mark.parametrize("change", [*SAME, *DIFFERENT])
def test_results_are_compared_and_nothing_else(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    shutil.copytree(GOLDEN / "tumbling", tmp_path / "tumbling")
    assert all(each.same_bytes for each in compare(GOLDEN, tmp_path, ["tumbling"]))
    change(tmp_path / "tumbling")
    compared = list(compare(GOLDEN, tmp_path, ["tumbling"]))
    changed = [each.name for each in compared if not each.same_bytes]
    assert changed == ["bounds_sum"]
    assert agree(compared) == (change in SAME)


def test_no_file_at_all_does_not_agree(tmp_path: Path) -> None:
    assert not agree(compare(tmp_path, tmp_path, ["tumbling"]))


# ---- the commands, with another oracle


def _flink(monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None] | None) -> None:
    """Answer with the golden files, changed, in place of Flink."""

    def answer(out: Path, paths: Sequence[Path], *, check: bool = False) -> int:
        del check
        for path in paths:
            shutil.copytree(path, out / path.name)
            if change is not None:
                change(out / path.name)
        return 0

    monkeypatch.setattr(oracle, "answer", answer)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(oracle.app, arguments, env={"COLUMNS": "120"})


@pytest.mark.parametrize("change", [None, *SAME, *DIFFERENT])
def test_rerun_tells_by_its_exit_status(
    change: Callable[[Path], None] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _flink(monkeypatch, change)
    result = run("rerun", "tumbling")
    assert result.exit_code == (1 if change in DIFFERENT else 0), result.stdout
    assert ("tumbling/bounds_sum" in result.stdout) == (change in DIFFERENT)


def test_rerun_of_a_family_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "answer", lambda *_, **__: 0)
    assert run("rerun", "tumblign").exit_code == 1


def test_fuzz_fails_where_our_answer_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(out: Path, paths: Sequence[Path], *, check: bool = False) -> int:
        del check
        for path in paths[0].rglob("*.json"):
            (out / path.name).parent.mkdir(parents=True, exist_ok=True)
            (out / path.name).write_text(_answered(json.loads(path.read_text())))
        return 0

    monkeypatch.setattr(oracle, "answer", nothing)
    result = run("fuzz", "--count", "2", "--only", "tumbling")
    assert result.exit_code == 1
    assert result.stdout.count("0 passed, 2 failed, 0 skipped") == 2  # by both engines


def test_fuzz_knows_its_families() -> None:
    result = run("fuzz", "--only", "tumbling,hopping")
    assert result.exit_code == 2
    assert "hopping" in result.stderr
