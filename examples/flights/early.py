"""The results of the streaming demo against those of a batch query over the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pandas as pd

_WINDOW = ["origin", "carrier", "window_start"]
_VALUES = ["departures", "mean_delay", "max_delay"]


@dataclass(frozen=True)
class Check:
    """What a comparison found.

    Parameters
    ----------
    complete : int
        Windows that are over and had no late row.
    same : int
        Of these, with a final result that equals the batch query's, to the last bit.
    touched : int
        Windows that are over and had late rows.
    short : int
        Of these, with a final result that lacks just them.
    unknown : int
        Final results of windows that the batch query does not have, or that are not over.
    open : int
        Windows that are not over: they have early results at most.
    """

    complete: int
    same: int
    touched: int
    short: int
    unknown: int
    open: int

    @property
    def is_good(self) -> bool:
        """Whether every result is what it should be."""
        return (self.same, self.short, self.unknown) == (self.complete, self.touched, 0)


@dataclass(frozen=True)
class Early:
    """What the n-th early results knew of the final ones; medians over windows.

    Parameters
    ----------
    number : int
        1 for the first results of windows.
    windows : int
        Windows that had an early result.
    share : float
        Of the departures.
    error : float
        Of the mean delay, minutes.
    """

    number: int
    windows: int
    share: float
    error: float


def check(
    results: pd.DataFrame, late: pd.DataFrame, batch: pd.DataFrame, watermark: datetime
) -> Check:
    """Compare final results with those of a batch query.

    Parameters
    ----------
    results : pandas.DataFrame
        All that the stream fired, with its firing columns.
    late : pandas.DataFrame
        Rows that came too late.
    batch : pandas.DataFrame
        Windows of a batch query over all rows.
    watermark : datetime
        How far the stream came.
    """
    final = results.loc[results["timing"] != "early", [*_WINDOW, *_VALUES]]
    both = batch.merge(final, how="outer", on=_WINDOW, suffixes=("", "_stream"))
    lost = late.assign(window_start=_window_starts(late["dep"], batch)).groupby(_WINDOW).size()
    lost_here = lost.reindex(pd.MultiIndex.from_frame(both[_WINDOW]), fill_value=0).to_numpy()
    over = (both["window_end"] <= watermark).to_numpy()
    equal = pd.Series(data=True, index=both.index)
    for name in _VALUES:
        equal &= both[name] == both[f"{name}_stream"]
    short = both["departures_stream"].fillna(0) + lost_here == both["departures"]
    whole, touched = over & (lost_here == 0), over & (lost_here > 0)
    return Check(
        complete=int(whole.sum()),
        same=int((equal & whole).sum()),
        touched=int(touched.sum()),
        short=int((short & touched).sum()),
        unknown=int((both["departures_stream"].notna() & ~over).sum()),
        open=int((~over & both["departures"].notna()).sum()),
    )


def _window_starts(times: pd.Series, batch: pd.DataFrame) -> pd.Series:
    """Return the start of each time's window: windows follow one another from the epoch on."""
    size = batch["window_end"].iloc[0] - batch["window_start"].iloc[0]
    starts: pd.Series = times.dt.floor(size)
    return starts


def early(results: pd.DataFrame, least: int) -> list[Early]:
    """Compare early results with final ones, of windows with at least so many departures."""
    final = results.loc[results["timing"] != "early", [*_WINDOW, *_VALUES]]
    final = final[final["departures"] >= least]
    both = results[results["timing"] == "early"].merge(final, on=_WINDOW, suffixes=("", "_final"))
    both = both.assign(
        share=both["departures"] / both["departures_final"],
        error=(both["mean_delay"] - both["mean_delay_final"]).abs(),
    )
    return [
        Early(int(str(number)) + 1, len(group), group["share"].median(), group["error"].median())
        for number, group in both.groupby("firing")
    ]
