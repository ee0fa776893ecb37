"""Base classes of sinks, which take all outputs of a streaming query, one micro-batch at a time.

A sink is a value that says where results go, and may be given to several queries. For each of them
it opens a writer, which holds what has to be known of that query. Spark calls the writer where it
runs ``foreachBatch``: on Spark Connect that is another process, to which the writer is pickled.
Several queries that run as one have a sink each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_windows.errors import QueryError
from gpu_windows.planning.plan import Plan

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame, SparkSession, StructType


@dataclass(frozen=True, kw_only=True)
class SinkQuery:
    """A query that is about to start, as its sink sees it.

    Parameters
    ----------
    session : SparkSession
    checkpoint : str
        Path of the checkpoint, which tells the query from others.
    plan : Plan
        What is computed: ``outputs.plan``.
    key_columns, window_columns : tuple of str
        Names of the result columns with the keys, and with the bounds of the window (none if
        results are of no window).
    identity : str
        32 hex digits that tell the checkpoint from others, also from an earlier one at the same
        path. Micro-batches count from 0 again in a new checkpoint: only together with it does a
        number say which micro-batch was written.
    read_schemas : callable
        Takes nothing, and returns what `schemas` is; Spark is asked only if a sink asks.
    lacking : tuple of str
        Columns that tell rows and firings apart, and that `Outputs.select` left out or changed.

    Examples
    --------
    A sink that refuses results without keys:

    >>> class KeyedSink(gw.ParquetSink):
    ...     def open(self, query: gw.typing.SinkQuery):
    ...         if not query.key_columns:
    ...             raise ValueError("key_by is missing")
    ...         return super().open(query)
    >>> KeyedSink("/data/minutes").path
    '/data/minutes'
    """

    session: SparkSession
    checkpoint: str
    plan: Plan
    key_columns: tuple[str, ...]
    window_columns: tuple[str, ...]
    identity: str
    read_schemas: Callable[[], Mapping[str, StructType]]
    lacking: tuple[str, ...] = ()

    @property
    def schemas(self) -> Mapping[str, StructType]:
        """Names of the outputs to Spark's schemas of them."""
        return self.read_schemas()

    @property
    def row_columns(self) -> tuple[str, ...]:
        """Names of the columns that tell results apart, but for the firings of a window.

        The keys, the bounds of the window, and the number of a row or of a grouping.

        Raises
        ------
        QueryError
            If a selection of results has left one of them out.
        """
        if self.lacking:
            rule = "this sink tells results apart: select these as they are, too"
            raise QueryError(rule, value=", ".join(self.lacking))
        return (*self.key_columns, *self.window_columns, *self.plan.query.number_columns)


@dataclass(frozen=True, kw_only=True)
class SinkBatch:
    """A micro-batch of a query: all of it has been computed, whatever is read of it.

    Parameters
    ----------
    session : SparkSession
        In which Spark runs the micro-batch; not the one in which the query was started.
    number : int
        Of the micro-batch, from 0 on in a checkpoint. An interrupted micro-batch is repeated with
        the same number and rows.
    rows : int
        Number of input rows of the micro-batch.
    planned_ms : int, optional
        When Spark planned the micro-batch, in milliseconds since 1970: the same when it comes
        again, and another one in another copy of the checkpoint. None: it cannot be read here.
    sizes : mapping of str to int
        Names of the outputs to their bytes as they are packed; 0 where an output has no rows.
    read : callable
        Takes the name of an output and how many partitions it may have at most (None: as many as
        there are), and returns the output.
    read_table : callable, optional
        Takes the name of an output, and returns it as an Arrow table where it has few rows: at most
        64 MiB as they are packed. Spark runs a job only if results are selected or ranked. None of
        an output with more rows.

    Examples
    --------
    >>> batch = gw.typing.SinkBatch(
    ...     session=None, number=7, rows=3, sizes={"result": 80, "late": 0}, read=None
    ... )
    >>> [name for name, size in batch.sizes.items() if size]
    ['result']
    >>> batch.is_again(3, None)
    True
    """

    session: SparkSession
    number: int
    rows: int
    sizes: Mapping[str, int]
    read: Callable[[str, int | None], DataFrame]
    planned_ms: int | None = None
    read_table: Callable[[str], pa.Table | None] = lambda name: None

    def is_again(self, rows: int, planned_ms: int | None) -> bool:
        """Whether a micro-batch of this number, with these rows and this plan time, is this one."""
        unknown = planned_ms is None or self.planned_ms is None
        return self.rows == rows and (unknown or self.planned_ms == planned_ms)

    @property
    def outputs(self) -> Mapping[str, DataFrame]:
        """Names of the outputs to their rows.

        ``result``, and ``late``: the late and rejected rows with their ``rejection_reason``; of
        side outputs ``sides/TAG``.
        """
        return {name: self.read(name, None) for name in self.sizes}


class SinkWriter(ABC):
    """Writes the micro-batches of one query, one after another.

    It must be picklable, so it holds no session and no DataFrame. It may remember what it likes
    from one micro-batch to the next; a query that is started again has another writer.

    Examples
    --------
    A writer that counts micro-batches with results:

    >>> class Counting(gw.SinkWriter):
    ...     batches = 0
    ...
    ...     def write(self, batch):
    ...         self.batches += batch.sizes["result"] > 0
    >>> writer = Counting()
    >>> writer.write(
    ...     gw.typing.SinkBatch(session=None, number=0, rows=3, sizes={"result": 80}, read=None)
    ... )
    >>> writer.batches
    1
    """

    def begin(self, query: SinkQuery) -> None:  # noqa: B027 - few have marks to leave
        """Leave marks where the results go, before the first micro-batch; here, none.

        Called once, at every start, when the checkpoint is known to be the query's.
        """

    @abstractmethod
    def write(self, batch: SinkBatch) -> None:
        """Write a micro-batch; one that was written before is replaced, merged or left alone.

        If it raises, the query ends, and the micro-batch comes again when it is started again.
        """


class Sink(ABC):
    """Where the results of a streaming query go: what `gpu_windows.write_stream` takes.

    Write your own as a subclass, with a `SinkWriter`. Whenever a query starts, on a new checkpoint
    or resuming from one, its sink must `check` the plan and `open` a writer. If neither
    raises, the checkpoint is made, then the writer must `begin`. After that it is given every
    micro-batch to `write`.

    Examples
    --------
    A sink that prints the results of every micro-batch:

    >>> class Printing(gw.SinkWriter):
    ...     def write(self, batch):
    ...         batch.outputs["result"].show()
    >>> class PrintSink(gw.Sink):
    ...     def open(self, query):
    ...         return Printing()
    >>> isinstance(PrintSink(), gw.Sink)
    True
    """

    def check(self, plan: Plan) -> None:  # noqa: B027 - most take all
        """Raise for a query whose results the sink cannot take; here, for none.

        Parameters
        ----------
        plan : Plan
            What ``outputs.plan`` is. Nothing has been asked of Spark yet.

        Raises
        ------
        QueryError
            With the rule.
        """

    @abstractmethod
    def open(self, query: SinkQuery) -> SinkWriter:
        """Return what writes the micro-batches of a query.

        It may read what is there and raise, and leaves nothing: the query may yet be refused.
        """


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
