"""The accelerator's report of a plan, as it stands in the driver's log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

_LINE = re.compile(
    r"(?P<indent> *)(?P<mark>[*!@^#]) ?(?P<kind>\w*) ?<(?P<name>[^>]+)> (?P<said>.*)"
)
#: Numbers that Spark gives to columns, which differ from run to run.
_IDS = re.compile(r"(?<=[\w)])#\d+L?\b")
#: Words before the reasons, which come in any order.
_BECAUSE = " because "


class Where(StrEnum):
    """Where a node would run."""

    GPU = "GPU"
    PARTLY = "partly"
    BRIDGE = "bridge"
    CPU = "CPU"


@dataclass(frozen=True)
class Node:
    """A line of the report: an operator of the plan, or an expression of one.

    Parameters
    ----------
    depth : int
        Of the line, 0 at the top.
    mark : str
        ``*``: will run; ``@``: could, but what is around it does not; ``^``: on the CPU within an
        operator on the GPU; ``!``: cannot; ``#``: goes away.
    kind : str
        Exec, Expression, Partitioning, Output or Scan.
    name : str
        The class in Spark.
    said : str
        The rest of the line without the numbers of columns, reasons in alphabetical order.
    """

    depth: int
    mark: str
    kind: str
    name: str
    said: str

    @property
    def where(self) -> Where:
        """Where it would run."""
        if self.mark == "!":
            return Where.CPU
        if "via CPU bridge" in self.said:
            return Where.BRIDGE
        return Where.PARTLY if "will partially run" in self.said else Where.GPU

    @property
    def is_operator(self) -> bool:
        """Whether it is an operator of the plan."""
        return self.kind == "Exec"

    @property
    def line(self) -> str:
        """The line as it was said."""
        return f"{'  ' * self.depth}{self.mark}{self.kind} <{self.name}> {self.said}"


def whole_plan(text: str) -> tuple[Node, ...]:
    """Return the nodes of the first report with the most operators.

    With adaptive execution the accelerator reports again for every stage of a query, and what it
    says of the later ones depends on the earlier ones having run, here on the CPU.

    Raises
    ------
    ValueError
        If nothing is reported.
    """
    plans = list(_plans(text))
    if not plans:
        raise ValueError(f"the accelerator must report the plan, it said {text[:200]!r}")
    return max(plans, key=lambda plan: sum(node.is_operator for node in plan))


def _plans(text: str) -> Iterator[tuple[Node, ...]]:
    nodes: list[Node] = []
    for line in text.splitlines():
        node = _node(line)
        if node is not None and node.depth == 0 and nodes:
            yield tuple(nodes)
            nodes = []
        if node is not None:
            nodes.append(node)
    if nodes:
        yield tuple(nodes)


def _node(line: str) -> Node | None:
    found = _LINE.fullmatch(line.rstrip())
    if found is None:
        return None
    verdict, because, reasons = _IDS.sub("", found["said"]).partition(_BECAUSE)
    said = verdict + because + "; ".join(sorted(reasons.split("; ")))
    kind = found["kind"] or "Expression"
    return Node(len(found["indent"]) // 2, found["mark"], kind, found["name"], said)
