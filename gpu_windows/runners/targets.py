"""A sink for each of several queries that run as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpu_windows.planning.plan import Plan
from gpu_windows.runners.sink import Sink, SinkBatch, SinkQuery, SinkWriter

if TYPE_CHECKING:
    from gpu_windows.annotations import StructType


@dataclass(frozen=True)
class Target:
    """One of the queries, and the sink of its results.

    Parameters
    ----------
    sink : Sink
    plan : Plan
    outputs : mapping of str to str
        Names of the outputs of the whole to their names in this query.
    as_query : callable
        Takes the whole as sinks see it, and returns this query. Where two may write to one place
        their identities differ: by them and the number of a micro-batch sinks recognise repeats.
    """

    sink: Sink
    plan: Plan
    outputs: Mapping[str, str]
    as_query: Callable[[SinkQuery], SinkQuery]

    def query(self, query: SinkQuery) -> SinkQuery:
        """Return this query as its sink sees it."""

        def schemas() -> Mapping[str, StructType]:
            found = query.schemas
            return {own: found[name] for name, own in self.outputs.items()}

        return replace(self.as_query(query), read_schemas=schemas)


@dataclass(frozen=True)
class TargetsSink(Sink):
    """Gives each of several queries that run as one to a sink of its own.

    Parameters
    ----------
    targets : mapping of str to Target
    """

    targets: Mapping[str, Target]

    def check(self, plan: Plan) -> None:
        """Raise what a sink raises of its query."""
        del plan
        for each in self.targets.values():
            each.sink.check(each.plan)

    def open(self, query: SinkQuery) -> SinkWriter:
        """Return the writers of all sinks."""
        opened = []
        for each in self.targets.values():
            own = each.query(query)
            opened.append(_OfTarget(dict(each.outputs), each.sink.open(own), own))
        return TargetsWriter(opened)


@dataclass
class _OfTarget:
    """The writer of one query, and the names of its outputs."""

    outputs: Mapping[str, str]
    writer: SinkWriter
    query: SinkQuery | None


class TargetsWriter(SinkWriter):
    """Writes each micro-batch to all sinks, in their order.

    Parameters
    ----------
    targets : list of _OfTarget
    """

    def __init__(self, targets: list[_OfTarget]) -> None:
        self._targets = targets

    def begin(self, query: SinkQuery) -> None:
        """Begin all of them."""
        del query
        for each in self._targets:
            assert each.query is not None, "a query begins once"
            each.writer.begin(each.query)
            each.query = None  # the writer is pickled, and a session cannot be

    def write(self, batch: SinkBatch) -> None:
        """Write a micro-batch; one that comes again goes to all of them again."""
        for each in self._targets:
            each.writer.write(_batch_of(batch, each.outputs))


def _batch_of(batch: SinkBatch, outputs: Mapping[str, str]) -> SinkBatch:
    names = {own: name for name, own in outputs.items()}

    return replace(
        batch,
        sizes={own: batch.sizes[name] for own, name in names.items()},
        read=lambda name, files: batch.read(names[name], files),
        read_table=lambda name: batch.read_table(names[name]),
    )
