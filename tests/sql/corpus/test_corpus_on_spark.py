"""The corpus on Spark: nothing is answered otherwise than by Flink, and nothing fails untyped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from tests.lanes import quick
from tests.sql.corpus.levels import MIN_RIGHT, MIN_RIGHT_ON_STREAMS
from tests.sql.corpus.on_spark import OnSpark
from tests.sql.corpus.outcomes import INTERNAL, RIGHT, WRONG
from tests.sql.corpus.texts import Text, scripts, statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXTS = {text.name: text for text in (*statements(), *scripts())}
#: A text of each kind that has its own way through Spark.
SAMPLE = (
    "interval_join/left_join",
    "match_recognize/v_shape",
    "order_limit/order_by",
    "over/lag_price",
    "scripts/two_inserts_one_view",
    "temporal_join/products",
    "top_n/q19_top10",
)
#: Texts that take the first of rows that arrive together, whose order Spark's shuffle loses: they
#: are ordered by their other columns (docs/sql.md), as `explain` warns. In Flink it is their order.
OF_TIES = ("scripts/dedup_proctime",)


def outcomes(
    spark: SparkSession, texts: Iterable[Text], *, streaming: bool
) -> tuple[int, dict[str, str]]:
    """Return how many texts are right, and what is wrong with others."""
    found = [OnSpark(spark, streaming=streaming).outcome(text) for text in texts]
    wrong = {each.text.name: each.detail for each in found if each.result in (WRONG, INTERNAL)}
    return sum(each.result == RIGHT for each in found), wrong


@pytest.mark.parametrize("streaming", quick([False, True], nightly=[False]))
def test_a_sample_is_answered_as_by_flink(spark: SparkSession, streaming: bool) -> None:
    right, wrong = outcomes(spark, (TEXTS[name] for name in SAMPLE), streaming=streaming)
    assert not wrong
    assert right == len(SAMPLE)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", sorted(MIN_RIGHT))
def test_texts_are_answered_as_by_flink_or_refused(
    spark: SparkSession, kind: str, streaming: bool
) -> None:
    texts = (text for text in TEXTS.values() if text.kind == kind)
    right, wrong = outcomes(spark, texts, streaming=streaming)
    assert {*wrong} == ({*OF_TIES} if streaming and kind == "scripts" else set())
    assert right >= (MIN_RIGHT_ON_STREAMS if streaming else MIN_RIGHT)[kind]
