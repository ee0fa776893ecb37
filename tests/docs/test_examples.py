"""The Python of every page runs, and prints what stands below it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.plot import as_svg, made_by
from tests.docs import setups
from tests.docs.pages import ROOT, name_of, pages
from tests.docs.pictures import PICTURES
from tests.docs.running import Example, examples, run
from tests.lanes import quick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Pages whose code on Spark takes half a minute each; those of the first steps are in CI.
LONG = [
    f"docs/{name}.md"
    for name in ("index", "operations", "process", "sinks", "sql", "streaming", "tutorial")
]


@pytest.mark.parametrize("name", sorted(setups.PLAIN))
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = setups.PLAIN[name]()
    run(ROOT / name, names)
    assert ("figure" in names) == (name in PICTURES)
    if name in PICTURES:
        _compare(names["figure"], PICTURES[name])


def _compare(figure: Figure, path: Path) -> None:
    kept, now = path.read_text(), as_svg(figure)
    if made_by(kept) == made_by(now):  # else points are elsewhere
        assert kept == now, "python -m tests.docs.pictures draws it anew"


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", quick(sorted(setups.ON_SPARK), nightly=LONG))
def test_examples_run_on_spark(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.docs.on_spark", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4000:]


def test_no_page_with_python_is_left_out() -> None:
    with_python = {name_of(page) for page in pages() if examples(page)}
    assert with_python == {*setups.PLAIN, *setups.ON_SPARK, *setups.NOT_RUN}


def test_what_is_said_of_an_example(tmp_path: Path) -> None:
    page = ROOT / "docs" / "none.md"
    text = (
        "<!-- before: x = 2 -->\n```python\nprint(x)\n```\n\n```text\n2\n```\n"
        "<!-- not run: no rows -->\n\n```python\nprint(y)\n```\n"
    )
    written = tmp_path / page.name
    written.write_text(text)
    found = [_facts(example) for example in examples(written)]
    assert found == [("print(x)\n", None, "x = 2", "2\n"), ("print(y)\n", "no rows", "", None)]


def _facts(example: Example) -> tuple[str, str | None, str, str | None]:
    return example.block.text, example.not_run, example.before, example.prints
