"""How many texts are right: raised as features land, never lowered."""

from __future__ import annotations

#: By kind; `test_corpus.py` says when there are more.
MIN_RIGHT = {
    "dedup_windows": 4,
    "group_windows": 14,
    "interval_join": 6,
    "lookup": 6,
    "match_recognize": 12,
    "order_limit": 6,
    "over": 15,
    "scripts": 68,
    "semi_anti": 4,
    "stateless": 89,
    "temporal_join": 4,
    "three_tables": 10,
    "top_n": 9,
    "top_n_windows": 5,
    "unnest": 10,
    "window_join": 5,
    "windows": 34,
}
#: The same over streams, which are not sorted or deduplicated; some texts read none, and a script
#: takes the first of rows that arrive together (`test_corpus_on_spark.OF_TIES`).
MIN_RIGHT_ON_STREAMS = {**MIN_RIGHT, "order_limit": 2, "stateless": 75, "scripts": 67}
#: Texts that are answered otherwise than by Flink, and why; a test fails once one is right.
DIFFERENT: dict[str, str] = {}
