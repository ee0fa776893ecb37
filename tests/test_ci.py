"""The file of CI asks for what is there: targets of `make`, versions that the package supports."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
Pair = tuple[str, str]

#: For which Pythons each PySpark is, as the classifiers of its newest release say.
PYTHONS = {
    "4.0": ("3.9", "3.10", "3.11", "3.12", "3.13"),
    "4.1": ("3.10", "3.11", "3.12", "3.13", "3.14"),
    "4.2": ("3.10", "3.11", "3.12", "3.13", "3.14"),
    "4.3": ("3.11", "3.12", "3.13", "3.14"),
}


@pytest.fixture
def jobs() -> dict[str, Any]:
    """The jobs of the file."""
    path = ROOT / ".github" / "workflows" / "ci.yml"
    if not path.exists():
        pytest.skip("an sdist has no file of CI")
    yaml = pytest.importorskip("yaml", reason="PyYAML is of the extra `test`")
    found: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return found


def targets_of(job: dict[str, Any]) -> Iterator[str]:
    """Yield what a job has `make` do, for every value of its matrix."""
    named = job.get("strategy", {}).get("matrix", {}).get("target", [])
    for step in job["steps"]:
        for target in re.findall(r"\bmake (\S+|\$\{\{.*?\}\})", step.get("run", "")):
            yield from named if target.startswith("${{") else [target]


def of_classifiers() -> list[str]:
    """Return the versions of Python that the package says it is for."""
    found = (re.fullmatch(r".* :: Python :: (3\.\d+)", each) for each in PROJECT["classifiers"])
    return [each[1] for each in found if each]


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def smoke_pairs(jobs: dict[str, Any]) -> set[Pair]:
    """Return the pairs of Python and Spark of the smoke tests."""
    matrix = jobs["smoke"]["strategy"]["matrix"]
    left_out = {(each["python"], each["spark"]) for each in matrix["exclude"]}
    every = set(product(matrix["python"], matrix["spark"]))
    assert left_out < every
    return every - left_out


def test_targets_are_those_of_the_makefile(jobs: dict[str, Any]) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = [target for job in jobs.values() for target in targets_of(job)]
    assert {*asked} <= known
    lines = re.findall(r"^run make ([^#\n]+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    checked = {word for line in lines for word in line.split() if word in known}
    assert {"test", "thorough", "lint", "docs", "connect"} == checked
    assert checked < {*asked}, "what every change must pass"


def test_pythons_are_those_of_the_classifiers(jobs: dict[str, Any]) -> None:
    pythons = jobs["smoke"]["strategy"]["matrix"]["python"]
    assert pythons == of_classifiers()
    assert PROJECT["requires-python"] == f">={pythons[0]}"


def test_sparks_are_within_the_bounds_of_the_extra(jobs: dict[str, Any]) -> None:
    sparks = jobs["smoke"]["strategy"]["matrix"]["spark"]
    (asked,) = (x for x in PROJECT["optional-dependencies"]["spark"] if x.startswith("pyspark"))
    found = re.fullmatch(r"pyspark>=(\S+),<(\S+)", asked)
    assert found is not None
    assert sparks[0] == found[1]
    assert all(number(found[1]) <= number(each) < number(found[2]) for each in sparks)
    assert f"$(MAKE) smoke SPARK={found[1]}\n" in (ROOT / "Makefile").read_text()


def test_sqlglot_is_tried_at_both_ends(jobs: dict[str, Any]) -> None:
    """The newest that pip finds by all targets but one, which takes the oldest."""
    (asked,) = PROJECT["optional-dependencies"]["sql"]
    found = re.fullmatch(r"sqlglot>=(\S+),<(\S+)", asked)
    assert found is not None
    assert number(found[1]) < number(found[2])
    assert f"--pin 'sqlglot=={found[1]}.*'" in (ROOT / "Makefile").read_text()
    assert "oldest-sqlglot" in {target for job in jobs.values() for target in targets_of(job)}


def test_every_pair_that_pyspark_is_for_is_tried_once(jobs: dict[str, Any]) -> None:
    newest = jobs["newest"]["strategy"]["matrix"]["python"]
    pairs = smoke_pairs(jobs) | {(python, max(PYTHONS, key=number)) for python in newest}
    wanted = {(python, spark) for spark in PYTHONS for python in PYTHONS[spark]}
    assert pairs == {pair for pair in wanted if pair[0] in of_classifiers()}
    assert len(pairs) == len(smoke_pairs(jobs)) + 1
