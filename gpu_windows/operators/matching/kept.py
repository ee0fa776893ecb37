"""What the automaton keeps of keys between calls: rows, partial matches, and those that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.ranges import offsets, ranges
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.pattern_matching.layout import NO_ROW, Found, Settings

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Field:
    """A list of numbers that is kept of each key.

    Parameters
    ----------
    name : str
        Of `Found`, and of the column in a store.
    of_waiting : bool
        Whether it is of matches that are complete and wait; else of partial ones.
    per : str
        How many numbers a match has: one, or as many as there are variables or aggregates.
    """

    name: str
    of_waiting: bool = False
    per: str = ""

    def width(self, settings: Settings) -> int:
        """Return how many numbers a match has."""
        return int(getattr(settings, self.per)) if self.per else 1

    @property
    def dtype(self) -> pa.DataType:
        """Type of the numbers."""
        return pa.float64() if self.name == "floats" else pa.int64()


FIELDS = (
    Field("state"),
    Field("starts"),
    Field("kept_ends", per="variables"),
    Field("ints", per="aggregates"),
    Field("floats", per="aggregates"),
    Field("counts", per="aggregates"),
    Field("waiting_starts", of_waiting=True),
    Field("waiting_ends", of_waiting=True, per="variables"),
)


@dataclass(frozen=True)
class Kept:
    """What is kept of some keys.

    Parameters
    ----------
    codes : int64[k]
        The keys, each once.
    rows : pyarrow.Table
        Their rows, those of a key together.
    lengths : int64[k]
        How many rows each has.
    partials, waiting : int64[k]
        How many partial matches each has, and how many complete ones.
    numbers : mapping of str to array
        Of all keys, by the names of `FIELDS`.
    """

    codes: Ints
    rows: pa.Table
    lengths: Ints
    partials: Ints
    waiting: Ints
    numbers: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def nothing(cls, schema: pa.Schema) -> Kept:
        """Return what is kept of no key; ``schema``: of the rows."""
        none = np.empty(0, np.int64)
        numbers = {each.name: none.astype(each.dtype.to_pandas_dtype()) for each in FIELDS}
        return cls(none, schema.empty_table(), none, none, none, numbers)

    @classmethod
    def together(cls, parts: Sequence[Kept]) -> Kept:
        """Put keys one after the other, which are different ones."""
        rows = pa.concat_tables([part.rows for part in parts], promote_options="default")
        arrays = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("codes", "lengths", "partials", "waiting")
        )
        codes, lengths, partials, waiting = arrays
        numbers = {
            each.name: np.concatenate([part.numbers[each.name] for part in parts])
            for each in FIELDS
        }
        return cls(codes, rows.combine_chunks(), lengths, partials, waiting, numbers)

    def counts(self, field: Field) -> Ints:
        """Return how many matches of the kind of a field each key has."""
        return self.waiting if field.of_waiting else self.partials

    def among(self, keys: Ints, nothing: Found, settings: Settings) -> Found:
        """Return what is kept, for an automaton that runs more keys.

        Parameters
        ----------
        keys : int64[k]
            Which of the keys of the run each of these is; they may come in any order.
        nothing : Found
            Of all keys of the run.
        settings : Settings
        """
        order = np.argsort(keys, kind="stable")
        found = dict[str, Any]()
        for name, counts in (("partials", self.partials), ("waiting", self.waiting)):
            of_key = np.zeros(len(nothing.partials) - 1, np.int64)
            of_key[keys] = counts
            found[name] = offsets(of_key)
        for field in FIELDS:
            counts, width = self.counts(field), field.width(settings)
            begins = offsets(counts * width)[:-1]
            places = ranges(begins[order], counts[order] * width)
            found[field.name] = np.ascontiguousarray(self.numbers[field.name][places])
        return nothing._replace(**found)


def kept_of(found: Found, codes: Ints, settings: Settings) -> tuple[Kept, Ints]:
    """Return what a run has left of keys, without their rows, and how many of these are over.

    Parameters
    ----------
    found : Found
    codes : int64[k]
        The keys of the run.
    settings : Settings

    Returns
    -------
    Kept
        Of the keys of which something is kept; its rows are missing, and begin after those that are
        over.
    int64[k]
        Rows of each key of the run that are over; LONG_MAX where nothing is kept.
    """
    partials, waiting = np.diff(found.partials), np.diff(found.waiting)
    first = np.full(len(codes), LONG_MAX)
    for starts, counts in ((found.starts, partials), (found.waiting_starts, waiting)):
        some = np.flatnonzero(counts)
        if len(some):
            of_rows = np.where(starts == NO_ROW, LONG_MAX, starts)
            least = np.minimum.reduceat(of_rows, offsets(counts[some])[:-1])
            first[some] = np.minimum(first[some], least)
    numbers: dict[str, Any] = {}
    for field in FIELDS:
        values, width = getattr(found, field.name), field.width(settings)
        if field.name in ("starts", "kept_ends", "waiting_starts", "waiting_ends"):
            counts = waiting if field.of_waiting else partials
            over = np.repeat(first, counts * width)
            has_row: NDArray[np.bool_] = np.ones(len(over), np.bool_)
            if field.name == "kept_ends":
                has_row = np.repeat(found.starts != NO_ROW, width)
            elif field.name == "starts":
                has_row = found.starts != NO_ROW
            values = np.where(has_row, values - np.where(over == LONG_MAX, 0, over), values)
        numbers[field.name] = values
    some = np.flatnonzero((partials > 0) | (waiting > 0))
    none = np.empty(0, np.int64)
    kept = Kept(codes[some], pa.table({}), none, partials[some], waiting[some], numbers)
    return kept, first


def first_times(kept: Kept, ts: Ints) -> Ints:
    """Return the time of the first row of the partial matches of each key; LONG_MAX if it has none.

    ``ts``: the times of its rows.
    """
    times = np.full(len(kept), LONG_MAX)
    some = np.flatnonzero(kept.partials)
    if len(some) and len(ts):
        starts = kept.numbers["starts"]
        begins = np.repeat(offsets(kept.lengths)[:-1], kept.partials)
        places = np.where(starts == NO_ROW, 0, begins + starts)
        of_rows = np.where(starts == NO_ROW, LONG_MAX, ts[places])
        times[some] = np.minimum.reduceat(of_rows, offsets(kept.partials[some])[:-1])
    return times
