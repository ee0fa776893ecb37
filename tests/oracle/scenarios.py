"""Scenario files without results, for the oracle to complete."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def write(scenarios: Iterable[dict[str, Any]], folder: Path) -> list[Path]:
    """Write ``folder/<family>/<name>.json`` for each; return the paths."""
    paths = []
    for scenario in scenarios:
        path = folder / scenario["family"] / f"{scenario['name']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(scenario), encoding="utf-8")
        paths.append(path)
    return paths


def text(scenario: dict[str, Any]) -> str:
    """Return it as the golden files are: a line for each field, and each element of the input."""
    fields = {name: value for name, value in scenario.items() if name != "input"}
    head = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items())
    elements = (json.dumps(element, separators=(",", ":")) for element in scenario["input"])
    return "{\n" + head + ',\n"input": [\n' + ",\n".join(elements) + "\n]\n}\n"
