"""Spark's watermarks and stateful steps that a streaming DataFrame already has.

Spark lets one column of a query have a watermark, and gives each stateful step the watermark of the
steps before it. So an existing watermark is adopted if it equals the one that the query asks for.
Steps that emit rows as soon as they arrive, such as deduplication, are allowed. Everything else is
refused when the query is built; Spark would fail after its start, or emit no results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.own_columns import NO_TIME
from gpu_windows.spark_glue.dataframes.plan_text import read_plan_text
from gpu_windows.vocabulary.watermarks import WatermarkStrategy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Microseconds in a millisecond, the unit of Spark's watermark.
_MILLISECOND = 1_000
#: Metadata key of the delay of a column's watermark, in milliseconds.
_DELAY = "spark.watermarkDelayMs"
#: Sections of a plan's text; one that cannot be made holds the error in its place. The latter has
#: the schema in its first line.
_SECTIONS = ("== Optimized Logical Plan ==\n", "== Analyzed Logical Plan ==\n[^\n]*\n")
#: A line of a plan: where its node begins, and the node's name.
_NODE = re.compile(r"^([ :|]*(?:\+- |:- )?)~?'?(\w+)")
_SOURCE, _WATERMARK, _UNION, _JOIN = "Streaming", "EventTimeWatermark", "Union", "Join"
#: Steps that emit a row when it arrives, or never: names for users.
_DEDUPLICATES = {
    "Deduplicate": "dropDuplicates",
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark",
}
_OWN_PROCESS = "use key_by(...).process(...) of gpu_windows"
#: Steps that are refused: names for users, and what to use instead.
_REFUSED = {
    "Distinct": ("DISTINCT in SQL", "use dropDuplicates()"),
    "Intersect": ("INTERSECT", "join by gw.stream(a).key_by(...) with gw.stream(b).key_by(...)"),
    "Except": ("EXCEPT", "join by gw.stream(a).key_by(...) with gw.stream(b).key_by(...)"),
    "Aggregate": (  # DISTINCT, too, once Spark has optimized a plan
        "groupBy or DISTINCT in SQL",
        "use dropDuplicates() for distinct rows, or aggregate by windows of gpu_windows, whose "
        "results gw.stream_results reads",
    ),
    _JOIN: ("a join of streams", "join by gw.stream(a).key_by(...) with gw.stream(b).key_by(...)"),
    "GlobalLimit": ("limit", "leave it out"),
    "Offset": ("offset", "leave it out"),
    "Sort": ("orderBy", "leave it out: arrival_order(...) of a window sets the order of arrival"),
    "Sample": ("sample", "choose rows by where(...), such as of a hash of a column"),
    "Window": ("a window function", "use key_by(...).over(...) of gpu_windows"),
    "FlatMapGroupsWithState": ("flatMapGroupsWithState", _OWN_PROCESS),
    "FlatMapGroupsInPandasWithState": ("applyInPandasWithState", _OWN_PROCESS),
}
_STATEFUL_PROCESSOR = "TransformWithState"


@dataclass(frozen=True)
class Adoption:
    """Steps before its inputs that a query adopts.

    Parameters
    ----------
    steps : tuple of str
        Names of the stateful steps in Spark's plan: state depends on them.
    notes : tuple of str
        Lines about them in ``explain()``.
    """

    steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def concat(cls, inputs: Iterable[Adoption]) -> Self:
        """Return the adoptions of several inputs as one."""
        every = tuple(inputs)
        steps = tuple(step for each in every for step in each.steps)
        return cls(steps=steps, notes=tuple(dict.fromkeys(n for each in every for n in each.notes)))


@dataclass(frozen=True)
class Upstream:
    """Watermarks and stateful steps of a streaming DataFrame.

    Parameters
    ----------
    watermarks : int
        Number of calls of ``withWatermark``.
    is_merged : bool
        Whether one of them is in an input of a union, so that others may have none.
    steps : tuple of str
        Names of the stateful steps in Spark's plan, the last one first.
    """

    watermarks: int = 0
    is_merged: bool = False
    steps: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: DataFrame) -> Self:
        """Read Spark's plan of a streaming DataFrame."""
        return cls.from_text(read_plan_text(frame))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read the text of a plan."""
        found = (_nodes_of(text, section) for section in _SECTIONS)
        nodes = next((nodes for nodes in found if any(each.is_source for each in nodes)), [])
        streams = [each for each in nodes if each.streams]
        watermarks = [each for each in streams if each.name == _WATERMARK]
        unions = [each for each in streams if each.name == _UNION and each.streams > 1]
        steps = tuple(each.name for each in streams if each.is_stateful)
        return cls(
            watermarks=len(watermarks),
            is_merged=any(node in union.below for node in watermarks for union in unions),
            steps=steps,
        )

    def adopt(self, frame: DataFrame, time: str, watermarks: WatermarkStrategy) -> Adoption:
        """Return the steps that a query adopts; raise for those that it cannot.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
        time : str
            The event time column.
        watermarks : WatermarkStrategy
            Of the query.

        Raises
        ------
        UnsupportedQueryError
            If a step, or another watermark, cannot be before a query of this package.
        """
        self._check_steps()
        if not self.watermarks:
            return self._adoption()
        if not _has_delay(watermarks) or time == NO_TIME:
            return self._adoption("withWatermark before gw.stream moves nothing here")
        delay: Any = frame.schema[time].metadata.get(_DELAY) if time in frame.columns else None
        wanted = delay_ms(watermarks)
        is_same = wanted is not None and delay == wanted
        if not is_same or self.watermarks > 1 or self.is_merged:
            raise UnsupportedQueryError(_watermark_rule(wanted, time), value=self._describe(delay))
        return self._adoption("the watermark is that of withWatermark before gw.stream")

    def _adoption(self, *notes: str) -> Adoption:
        names = (_DEDUPLICATES[step] for step in self.steps)
        dropped = (f"what {name} drops before gw.stream, late rows too, is lost" for name in names)
        return Adoption(self.steps, (*notes, *dropped))

    def _check_steps(self) -> None:
        for step in self.steps:
            if step in _DEDUPLICATES:
                continue
            name, remedy = _refusal(step)
            rule = (
                f"{name} cannot be before gw.stream, because its rows arrive too late or not at "
                f"all: {remedy}, or write its results with write_stream or to a table, and read "
                "that as a stream"
            )
            raise UnsupportedQueryError(rule, value=step)

    def _describe(self, delay: int | None) -> str:
        if self.watermarks > 1:
            return f"{self.watermarks} of them"
        if self.is_merged:
            return "one in an input of a union"
        return "that of another column" if delay is None else f"{delay} milliseconds"


def _has_delay(watermarks: WatermarkStrategy) -> bool:
    """Whether watermarks can be compared with a delay of Spark's."""
    is_generated = watermarks.generator is not None or watermarks.idleness is not None
    return not (watermarks.in_processing_time or is_generated)


def delay_ms(watermarks: WatermarkStrategy) -> int | None:
    """Return the delay of the equal Spark watermark; None if Spark has no equal one."""
    if not watermarks.moves or watermarks.column is not None or watermarks.max_ahead is not None:
        return None
    return -(-watermarks.out_of_orderness // _MILLISECOND)


def _watermark_rule(wanted: int | None, time: str) -> str:
    same = (
        "" if wanted is None else f', or make it withWatermark("{time}", "{wanted} milliseconds")'
    )
    return (
        "a stream has one watermark, that of event_time(...): leave out withWatermark before "
        f"gw.stream{same}"
    )


def _refusal(step: str) -> tuple[str, str]:
    if step.startswith(_STATEFUL_PROCESSOR):
        return "transformWithState", _OWN_PROCESS
    return _REFUSED[step]


@dataclass(eq=False)
class _Node:
    """A node of a plan, and the nodes below it."""

    name: str
    depth: int
    below: list[_Node]

    @property
    def is_source(self) -> bool:
        return self.name.startswith(_SOURCE)

    @property
    def streams(self) -> int:
        """How many of its inputs are streams; 1 of a source."""
        depth = min((each.depth for each in self.below), default=0)
        inputs = [each for each in self.below if each.depth == depth]
        return sum(
            each.is_source or any(one.is_source for one in each.below) for each in inputs
        ) or int(self.is_source)

    @property
    def is_stateful(self) -> bool:
        if self.name == _JOIN:
            return self.streams > 1
        is_listed = self.name in _DEDUPLICATES or self.name in _REFUSED
        return is_listed or self.name.startswith(_STATEFUL_PROCESSOR)


def _nodes_of(text: str, section: str) -> list[_Node]:
    """Return the nodes of a section, each with those below it."""
    rest = re.split(section, text, maxsplit=1)[1:]
    nodes: list[_Node] = []
    above: list[_Node] = []
    for line in "".join(rest).partition("\n== ")[0].splitlines():
        found = _NODE.match(line)
        if found is None or (nodes and not found[1].strip()):
            continue  # the rest of a text that has several lines
        node = _Node(found[2], len(found[1]), [])
        while above and above[-1].depth >= node.depth:
            above.pop()
        for each in above:
            each.below.append(node)
        above.append(node)
        nodes.append(node)
    return nodes
