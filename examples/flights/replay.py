"""The flights as they might be reported: soon after they left, some of them weeks later.

The data say when a flight left, not when anyone was told. So reports are made up: each flight is
reported a while after its departure (or, if it never left, after its scheduled one), and a few are
filed late. The same seed gives the same reports.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from examples.flights.flights import ZONE

#: Columns of a report.
COLUMNS = ["origin", "carrier", "dep", "dep_delay"]
#: Schema of the files, as Spark writes it down.
SCHEMA = "origin string, carrier string, dep timestamp, dep_delay int"

_BEGIN = pd.Timestamp("2013-01-01", tz=ZONE).tz_convert("UTC")
_WEEK = pd.Timedelta(days=7)
_SEED = 2013
#: Mean of the time until a flight is reported, in minutes.
_SOON = 20.0
#: Share of flights that are reported late, and within which time, in minutes.
_LATE, _AT_MOST = 0.02, 21 * 24 * 60.0


def reported(flights: pd.DataFrame, weeks: int) -> pd.DataFrame:
    """Return the reports of some weeks, in the order in which they come.

    Parameters
    ----------
    flights : pandas.DataFrame
        As `examples.flights.flights.with_instants` returns it.
    weeks : int
        From 1 January 2013 on, of reports.

    Returns
    -------
    pandas.DataFrame
        `COLUMNS`, and ``week``: in which a flight is reported, from 0 on.
    """
    rng = np.random.default_rng(_SEED)
    delay = rng.exponential(_SOON, len(flights))
    late = rng.random(len(flights)) < _LATE
    delay[late] += rng.uniform(0, _AT_MOST, np.count_nonzero(late))
    known = flights["dep"].fillna(flights["sched_dep"]) + pd.to_timedelta(delay, unit="m")
    week = (known - _BEGIN) // _WEEK
    reports = flights[COLUMNS].assign(week=week, known=known)[week < weeks]
    return reports.sort_values("known", kind="stable").drop(columns="known")


def write(reports: pd.DataFrame, folder: Path) -> list[Path]:
    """Write a file for each week; a stream takes them in order of their times of modification.

    Parameters
    ----------
    reports : pandas.DataFrame
        As `reported` returns it.
    folder : Path
        Is made.

    Returns
    -------
    list of Path
    """
    folder.mkdir(parents=True)
    files = []
    for number, (_, rows) in enumerate(reports.groupby("week")):
        file = folder / f"week-{number:02}.parquet"
        table = pa.Table.from_pandas(rows[COLUMNS], preserve_index=False)
        pq.write_table(table, file, coerce_timestamps="us")
        os.utime(file, (number, number))
        files.append(file)
    return files
