"""The checkpoint of a streaming query, from outside: what is in it is read, nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pyspark.errors import AnalysisException

from gpu_windows.errors import CheckpointError, GpuWindowsError
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.local_session import reason
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.packing import SHARD
from gpu_windows.spark_glue.processor import STATE
from gpu_windows.spark_glue.times import SparkClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

#: Where Spark keeps the watermark of a micro-batch, and the one of the next.
_WATERMARKS = (("offsets", "batchWatermarkMs"), ("commits", "nextBatchWatermarkMs"))


@dataclass(frozen=True)
class StatefulOperator:
    """A stateful operator of a query that may be one of this package's.

    Parameters
    ----------
    number : int
        In the query.
    timers_of : str
        Spark's time mode: whose timers there are, "EventTime" or "ProcessingTime".
    first, last : int, optional
        The earliest and the latest committed micro-batch; None if none is committed yet.
    """

    number: int
    timers_of: str
    first: int | None
    last: int | None

    @classmethod
    def of(cls, row: Row) -> Self | None:
        """Read a row of Spark's state metadata; None if it is surely of another operator."""
        known = json.loads(row["operatorProperties"] or "{}")
        kinds = {v["stateName"]: v["stateVariableType"] for v in known.get("stateVariables", ())}
        if kinds.get(STATE) != "MapState":
            return None
        first, last = (None if row[n] < 0 else row[n] for n in ("minBatchId", "maxBatchId"))
        return cls(row["operatorId"], known["timeMode"], first, last)


class Checkpoint:
    """A checkpoint of a query of this package.

    Parameters
    ----------
    session : SparkSession
    path : str
        Of the folder that Spark was given.
    operator : int, optional
        Number of the stateful operator, needed where several of a query are of this package.

    Attributes
    ----------
    manifest : Manifest or None
        What `gpu_windows.write_stream` left there.
    operator : StatefulOperator or None
        None if the query has not come that far.

    Raises
    ------
    CheckpointError
        If there is no such folder, or it is no checkpoint, or one of another query.
    """

    def __init__(self, session: SparkSession, path: str, operator: int | None = None) -> None:
        self.path = path.rstrip("/") or path
        self._session = session
        with self.told():
            _ = session.streams.active  # else 4.1 and 4.2 read no state: SPARK-58973
            self.manifest = Manifest.in_checkpoint(session, self.path)
            found = self._operators()
        self.operator = _one_of(found, operator)

    def batch(self, wanted: int | None) -> int | None:
        """Return the number of a micro-batch, by default the last one; None if there is none.

        Raises
        ------
        CheckpointError
            If the checkpoint does not have it.
        """
        first, last = (self.operator.first, self.operator.last) if self.operator else (None, None)
        if wanted is None:
            return last
        if first is None or last is None:
            raise CheckpointError("no micro-batch is committed yet", value=wanted)
        if not first <= wanted <= last:
            rule = f"the micro-batches of the checkpoint are {first} to {last}"
            raise CheckpointError(rule, value=wanted)
        return wanted

    def watermarks(self, batch: int) -> tuple[int | None, int | None]:
        """Return Spark's watermark in a micro-batch and after it, in ticks; None: none yet."""
        with self.told():
            now, after = (self._log(folder, batch)[name] for folder, name in _WATERMARKS)
        return (ticks(now) if now > 0 else None, ticks(after) if after > 0 else None)

    def state(self, batch: int, **options: Any) -> DataFrame:
        """Return the operator's state after a micro-batch.

        Parameters
        ----------
        batch : int
            Number of a committed micro-batch.
        **options : Any
            Of Spark's state data source.
        """
        assert self.operator is not None, "what has micro-batches has an operator"
        return self._state(self.operator, batch, **options)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise an error of Spark's without the stack of the JVM, as a CheckpointError."""
        try:
            yield
        except GpuWindowsError:
            raise
        except Exception as error:
            rule = f"Spark must be able to read the checkpoint: {reason(error)}"
            raise CheckpointError(rule, value=self.path) from error

    def _state(self, operator: StatefulOperator, batch: int, **options: Any) -> DataFrame:
        reader = self._session.read.format("statestore")
        reader = reader.options(batchId=batch, operatorId=operator.number, **options)
        return reader.load(self.path)

    def _operators(self) -> list[StatefulOperator]:
        """Return the operators that are ours; none if the query has not come so far."""
        if not self._exists(f"{self.path}/metadata"):  # Spark 4.0 makes folders where none are
            if self.manifest is None:
                raise CheckpointError(self._what_is_wrong(), value=self.path)
            return []
        rows = self._session.read.format("state-metadata").load(self.path).collect()
        known = [each for row in rows if (each := StatefulOperator.of(row)) is not None]
        found = sorted(filter(self._is_ours, known), key=lambda each: each.number)
        if not found and self.manifest is None:
            rule = "the checkpoint must be of a gpu_windows query: it is of another one"
            raise CheckpointError(rule, value=self.path)
        return found

    def _is_ours(self, operator: StatefulOperator) -> bool:
        if operator.last is None:
            return self.manifest is not None
        schema = self._state(operator, operator.last, stateVarName=STATE).schema
        return schema["key"].dataType.simpleString() == f"struct<{SHARD}:bigint>"

    def _log(self, folder: str, batch: int) -> dict[str, Any]:
        """Return the entry of a micro-batch in a log of Spark's: its second line."""
        path = f"{self.path}/{folder}/{batch}"
        found = self._session.read.text(path, wholetext=True).first()
        assert found is not None, path
        entry: dict[str, Any] = json.loads(found[0].splitlines()[1])
        return entry

    def _what_is_wrong(self) -> str:
        if self._exists(self.path):
            return "the folder must be the checkpoint of a streaming query: it is none"
        return "the checkpoint must be a folder: there is none"

    def _exists(self, path: str) -> bool:
        files = self._session.read.option("recursiveFileLookup", "true")
        try:
            _ = files.text(path).schema  # Spark Connect looks only now
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return False
        return True


def ticks(ms: int) -> int:
    """Return a time of Spark's in ticks."""
    return min(SparkClock().time(ms), LONG_MAX)


def _one_of(found: list[StatefulOperator], wanted: int | None) -> StatefulOperator | None:
    numbers = [each.number for each in found]
    if wanted is None and len(found) > 1:
        raise CheckpointError("of several operators one must be chosen", value=numbers)
    if wanted is not None and wanted not in numbers:
        raise CheckpointError(f"the operators of gpu_windows are {numbers}", value=wanted)
    return next((each for each in found if wanted in (None, each.number)), None)
