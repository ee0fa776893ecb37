"""Makes the rows of a stage in a micro-batch from streams and results of other stages.

Conditions, columns, unions and joins of results are functions of DataFrames. Each micro-batch
applies them to the results that are staged in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol, Self
from uuid import uuid4

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Names of streams and of stages to DataFrames of a micro-batch.
Frames = Mapping[str, "DataFrame"]
Change = Callable[["DataFrame"], "DataFrame"]

#: Names of the column with the number of a row's stream, and prefix of the columns with its values.
_STREAM, _VALUES = "__stream", "__values_"


class EarlierStage(Protocol):
    """A stage whose results are rows of another stage."""

    @property
    def name(self) -> str:
        """Name that the user gave it."""


@dataclass(frozen=True)
class StageRows:
    """A function that makes the rows of a stage, and the streams that it reads.

    Parameters
    ----------
    make : callable
        Takes the rows of streams and the results of stages in a micro-batch, by name, and returns
        the stage's rows. On Spark Connect it is pickled: it refers to no DataFrame.
    streams : mapping of str to DataFrame
        Names of the streams to their DataFrames.
    """

    make: Callable[[Frames], DataFrame]
    streams: Mapping[str, DataFrame]

    @classmethod
    def of_stream(cls, frame: DataFrame) -> Self:
        """Return the rows of a stream."""
        name = f"stream {uuid4().hex}"  # stages have no blanks in their names
        return cls(itemgetter(name), {name: frame})

    @classmethod
    def of_stage(cls, name: str) -> Self:
        """Return the results of a stage."""
        return cls(itemgetter(name), {})

    @classmethod
    def union(cls, parts: Iterable[tuple[DataFrame, StageRows | None]]) -> Self | None:
        """Return the union of several sources; None if none is made in micro-batches.

        ``parts``: of each the DataFrame, and how its rows are made.
        """
        given = tuple(parts)
        if all(rows is None for _, rows in given):
            return None
        every = [cls.of_stream(frame) if rows is None else rows for frame, rows in given]
        makes = tuple(each.make for each in every)

        def make(frames: Frames) -> DataFrame:
            return union_frames(each(frames) for each in makes)

        streams = {name: frame for each in every for name, frame in each.streams.items()}
        return cls(make, streams)

    def then(self, change: Change) -> Self:
        """Return the rows after a change."""
        make = self.make
        return type(self)(lambda frames: change(make(frames)), self.streams)


def union_frames(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of DataFrames of the same columns: at least one."""
    return reduce(lambda one, other: one.union(other), frames)


def combine_streams(streams: Mapping[str, DataFrame]) -> DataFrame:
    """Return the union of several streams, because Spark runs a query on one."""
    every = list(streams.values())
    if len(every) == 1:
        return every[0]
    return union_frames(_among(every, number) for number in range(len(every)))


def _among(every: Sequence[DataFrame], number: int) -> DataFrame:
    values = [
        (F.struct("*") if other == number else F.lit(None).cast(frame.schema)).alias(
            f"{_VALUES}{other}"
        )
        for other, frame in enumerate(every)
    ]
    return every[number].select(F.lit(number).alias(_STREAM), *values)


def split_streams(rows: DataFrame, names: Sequence[str]) -> dict[str, DataFrame]:
    """Return the rows of each stream, given those that `combine_streams` combined."""
    if len(names) == 1:
        return {names[0]: rows}
    return {
        name: rows.where(F.col(_STREAM) == number).select(f"{_VALUES}{number}.*")
        for number, name in enumerate(names)
    }
