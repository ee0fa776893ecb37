"""The report as Markdown, the same for the same plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.rapids.plan import Node, Where

Plan = Sequence[Node]

#: Said of an expression that has a version for the GPU, but goes with one that has none.
_ALONG = "it avoids excess CPU and GPU transfers"

_HEAD = """\
# What the RAPIDS Accelerator says of our plans

Read from the driver's log of `{artifact}` in explain-only mode on PySpark {pyspark}, without a GPU;
made by `make rapids`. What it means: [rapids.md](rapids.md).

Counted are the nodes of a plan: on the GPU; in part, as Python is not run by it; on the CPU.
Bridged are expressions that run on the CPU within a node on the GPU.
"""


def report(
    plans: Mapping[str, Plan], trials: Mapping[str, Plan], *, artifact: str, pyspark: str
) -> str:
    """Return the whole page.

    Parameters
    ----------
    plans, trials : mapping of str to sequence of Node
        By the names of `tests.rapids.queries`.
    artifact, pyspark : str
        Versions of what reported.
    """
    parts = [_HEAD.format(artifact=artifact, pyspark=pyspark), _summary(plans)]
    if trials:
        parts += ["## Types and expressions\n", _trials(trials)]
    parts += [f"## {name}\n\n```\n{_lines(plan)}\n```\n" for name, plan in plans.items()]
    return "\n".join(parts)


def _summary(plans: Mapping[str, Plan]) -> str:
    rows = [
        (
            name,
            _count(plan, Where.GPU),
            _count(plan, Where.PARTLY),
            ", ".join(_on_cpu(plan)) or "-",
            ", ".join(f"`{each}`" for each in _bridged(plan)) or "-",
        )
        for name, plan in plans.items()
    ]
    return _table(("query", "GPU", "in part", "CPU", "bridged"), rows)


def _count(plan: Plan, where: Where) -> str:
    return str(sum(node.is_operator and node.where is where for node in plan))


def _on_cpu(plan: Plan) -> list[str]:
    names = [node.name for node in plan if node.is_operator and node.where is Where.CPU]
    return [
        f"`{name}`" if names.count(name) == 1 else f"{names.count(name)} `{name}`"
        for name in dict.fromkeys(names)
    ]


def _bridged(plan: Plan) -> list[str]:
    """Return the classes of expressions that themselves have no version for the GPU."""
    return sorted(
        {node.name for node in plan if node.where is Where.BRIDGE and _ALONG not in node.said}
    )


def _trials(trials: Mapping[str, Plan]) -> str:
    rows = []
    for name, plan in trials.items():
        asked = [node for node in plan if _tells(node)] or [plan[0]]
        rows.append((f"`{name}`", "; ".join(dict.fromkeys(node.said for node in asked))))
    return _table(("tried", "what it says"), rows)


def _tells(node: Node) -> bool:
    return node.where is Where.BRIDGE or (node.where is Where.CPU and node.is_operator)


def _lines(plan: Plan) -> str:
    """Return the operators, and of the expressions those that would not run on the GPU.

    What is said again of an operator's expressions is left out, and of those that go along with one
    that is bridged, all but the first.
    """
    lines: list[str] = []
    said: set[str] = set()
    for node in plan:
        words = _ALONG if _ALONG in node.said else node.said
        if node.is_operator:
            said.clear()
        elif node.where is Where.GPU or words in said:
            continue
        said.add(words)
        lines.append(node.line)
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
