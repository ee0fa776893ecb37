"""Rows with a time and a key, as data."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.runners.outputs import Source
from gpu_windows.vocabulary.watermarks import WatermarkStrategy


@dataclass(frozen=True)
class KeyedInput:
    """Rows with a time and a key.

    Parameters
    ----------
    source : Source
    time : str
        The event time column; `gpu_windows.planning.own_columns.NO_TIME` if rows have none.
    watermarks : WatermarkStrategy
    keys : tuple of str
        Key columns, in order; none for windows of all rows.
    """

    source: Source
    time: str
    watermarks: WatermarkStrategy
    keys: tuple[str, ...]
