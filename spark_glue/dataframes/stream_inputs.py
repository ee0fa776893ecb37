"""The inputs of a streaming query: their names, and their sources as in Spark's plans."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any

from gpu_windows.errors import QueryError
from gpu_windows.planning.input_facts import InputFacts
from gpu_windows.spark_glue.dataframes.plan_text import read_plan_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

_ANALYZED = re.compile(r"^== Analyzed Logical Plan ==\n(.*?)^== ", re.MULTILINE | re.DOTALL)
#: Characters before a node of a plan, which draw the tree.
_TREE = re.compile(r"^[\s:+|-]*~?")
_RELATION, _ALIAS = "StreamingRelation", "SubqueryAlias"
#: What only some versions of Spark add.
_UNASSIGNED = ", name=<Unassigned>"
#: Parts that differ in every session: addresses of Java objects, numbers of columns at the end.
_ADDRESS, _NUMBER = re.compile(r"(?<=[\w$])@[0-9a-f]{1,8}(?=[,)\s])"), re.compile(r"#\d+L?")
_COLUMNS = re.compile(r"\[[^\[\]]*\]$")
#: What Spark writes in the place of options whose values look like secrets.
_REDACTED = "(redacted)"
_DIGITS = 32


@dataclass(frozen=True)
class StreamInput:
    """An input of a query: what ``gpu_windows.stream`` was given.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    name : str, optional
    time : str, optional
        Its event time column, once it has one.
    """

    frame: DataFrame
    name: str | None = None
    time: str | None = None

    @cached_property
    def facts(self) -> InputFacts:
        """Facts about the input for the checkpoint, from Spark's plan, which is read once."""
        shape = f"{self.frame.schema.simpleString()} {self.time}"
        texts = read_sources(read_plan_text(self.frame))
        is_known = not any(_REDACTED in text for text in texts)
        sources = tuple(map(_digest, texts)) if is_known else ()
        return InputFacts(self.name, _digest(shape), sources)


def read_sources(plan_text: str) -> list[str]:
    """Return the lines of a plan that describe each source of a stream, in Spark's order.

    Parts that differ in every session are removed. The name of a table, which is in the line
    above, is added.

    Parameters
    ----------
    plan_text : str
        See `gpu_windows.spark_glue.dataframes.plan_text.read_plan_text`.
    """
    found = _ANALYZED.search(plan_text)
    lines = [_TREE.sub("", line) for line in (found[1].splitlines() if found else ())]
    aliases: list[str] = []
    sources = []
    for line in lines:
        if line.startswith(_RELATION):
            sources.append("\n".join([*aliases, _without_numbers(line)]))
        aliases = [*aliases, line] if line.startswith(_ALIAS) else []
    return sources


def _without_numbers(line: str) -> str:
    """Return a line of a plan without the parts that differ in every session."""
    line = _ADDRESS.sub("", line.replace(_UNASSIGNED, ""))
    return _COLUMNS.sub(lambda columns: _NUMBER.sub("", columns[0]), line)


def warn_of_alike(inputs: Iterable[StreamInput]) -> None:
    """Log a warning if two inputs could be swapped between starts without being noticed.

    That is so if Spark's plan describes both in the same way, or does not show what they read.
    """
    frames = {id(each.frame): each for each in inputs if each.name is None}
    facts = [each.facts for each in frames.values()]
    distinct = {(each.shape, each.sources) for each in facts}
    unknown = [each.shape for each in facts if not each.sources]
    if len(distinct) < len(facts) or len(set(unknown)) < len(unknown):
        logger.warning(
            "inputs of the query have the same columns, and Spark does not show which is which: "
            'name them, gw.stream(rows, name="..."), so that a start with others in their places '
            "is refused"
        )


def complete_input(inputs: Iterable[StreamInput], **facts: str) -> tuple[StreamInput, ...]:
    """Return inputs; a single one gets what it lacks of a ``name`` and an event ``time``."""
    given = tuple(inputs)
    if len(given) != 1:
        return given
    lacking: dict[str, Any] = {
        fact: value for fact, value in facts.items() if getattr(given[0], fact) is None
    }
    return (replace(given[0], **lacking),)


def join_inputs(inputs: Iterable[Iterable[StreamInput]]) -> tuple[StreamInput, ...]:
    """Return the inputs of several sources, in order.

    Raises
    ------
    QueryError
        If two of them have the same name.
    """
    given = tuple(chain.from_iterable(inputs))
    by_name: dict[str, StreamInput] = {}
    for each in given:
        if each.name is not None and by_name.setdefault(each.name, each).frame is not each.frame:
            raise QueryError("each input of a query has a name of its own", value=repr(each.name))
    return given


def _digest(text: str) -> str:
    """Return a digest: texts of plans hold paths and options, which may be secrets."""
    return sha256(text.encode()).hexdigest()[:_DIGITS]
