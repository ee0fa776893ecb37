"""Changes of windows on Spark batch are those of the local runner, whoever makes the partials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [(key, at, at) for at, key in enumerate("aababcbabbaac")]
GAP = gw.EventTimeSessionWindows.with_gap("2 seconds")
TUMBLING = gw.TumblingEventTimeWindows.of("5 seconds")


def changes(
    source: Any,
    assigner: gw.functions.WindowAssigner,
    trigger: gw.functions.Trigger,
    **options: Any,
) -> Any:
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(source).event_time("ts", strategy).key_by("k")
    made = keyed.window(assigner).trigger(trigger).arrival_order("ts").options(**options)
    return made.with_firing_columns(changes=True).aggregate(n=gw.count(), last=gw.max("v"))


@pytest.mark.parametrize(
    ("assigner", "trigger", "options"),
    [
        (GAP, gw.CountTrigger.of(1), {"device": "cpu"}),
        (GAP, gw.CountTrigger.of(1), {"engine": "reference"}),
        (GAP, gw.EventTimeTrigger(), {"device": "cpu"}),
        (TUMBLING, gw.EventTimeTrigger(), {"partials": "spark"}),
        (TUMBLING, gw.EventTimeTrigger(), {"partials": "kernels"}),
        (TUMBLING, gw.CountTrigger.of(2), {"device": "cpu"}),
    ],
)
def test_batch(
    spark: SparkSession,
    assigner: gw.functions.WindowAssigner,
    trigger: gw.functions.Trigger,
    options: dict[str, Any],
) -> None:
    table = seconds(ROWS)
    wanted = changes(table, assigner, trigger, device="cpu")
    found = changes(spark.createDataFrame(table), assigner, trigger, **options).toArrow()
    plain = [found, wanted]
    for number, each in enumerate(plain):
        for name in ("window_start", "window_end"):
            at = each.schema.get_field_index(name)
            each = each.set_column(at, name, each[name].cast(pa.timestamp("us")).cast(pa.int64()))
        plain[number] = each
    assert sorted(rows_of(plain[0]), key=repr) == sorted(rows_of(plain[1]), key=repr)
    deletes = wanted["change"].to_pylist().count("delete")
    assert (deletes > 0) == (assigner is GAP and isinstance(trigger, gw.CountTrigger))
