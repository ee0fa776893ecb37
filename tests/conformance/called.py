"""``python -m tests.conformance`` as the tests call it, and a scenario that they spoil."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from tests.conformance.__main__ import app

GOLDEN = Path(__file__).parents[1] / "golden"


def conformance(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200"})


def last_line(result: Result) -> str:
    return result.stdout.strip().splitlines()[-1]


def spoiled(tmp_path: Path, change: Any) -> str:
    scenario = json.loads((GOLDEN / "tumbling" / "bounds_sum.json").read_text())
    change(scenario)
    file = tmp_path / "spoiled.json"
    file.write_text(json.dumps(scenario))
    return str(file)
