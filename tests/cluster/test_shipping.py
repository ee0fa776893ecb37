"""The package as users ship it, a server of Spark Connect, and streams that go on elsewhere."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpu_windows as gw
from tests.chaos.driver import LATE
from tests.cluster.connect import run_job, served
from tests.cluster.deaths import undisturbed_stream
from tests.cluster.job import KEYS, ROWS
from tests.cluster.scale import scaled, shards
from tests.cluster.shipping import WAYS, contents, submit, wheel
from tests.cluster.standalone import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900)]


def totals() -> tuple[list[int], list[int]]:
    """Return the sum of totals and the number of all windows, and of those that a stream fires.

    The watermark of a stream stays at its last row.
    """
    ids = pa.array(range(ROWS))
    at = pa.array(range(0, ROWS * 1_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    table = pa.table({"ts": at, "k": [each % KEYS for each in range(ROWS)], "v": ids})
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(table).event_time("ts", watermarks).key_by("k")
    sliding = keyed.window(gw.SlidingEventTimeWindows.of("10 minutes", "1 minute"))
    found = sliding.with_outputs().aggregate(total=gw.sum("v"), n=gw.count()).result()
    over = found.filter(pc.less_equal(found["window_end"], at[-1]))
    return tuple(  # type: ignore[return-value]
        [pc.sum(each["total"]).as_py(), len(each)] for each in (found, over)
    )


def test_the_wheel_holds_what_links_lead_to(tmp_path: Path) -> None:
    names = contents(wheel(tmp_path))
    for folder in ("kernels", "spark_glue"):
        assert f"gpu_windows/{folder}/__init__.py" in names
        assert not [name for name in names if name.startswith(f"{folder}/")]


@pytest.mark.parametrize("way", WAYS)
def test_a_package_that_is_shipped(tmp_path: Path, way: str) -> None:
    shipped = WAYS[way](tmp_path, wheel(tmp_path))
    cache = {"spark.executorEnv.XDG_CACHE_HOME": str(tmp_path / "cache")}
    with Cluster(tmp_path / "cluster", workers=2) as cluster:
        found = submit(cluster, tmp_path, shipped, cache)
    assert (found["batch"], found["stream"]) == totals()
    for worker in found["workers"]:
        place = "./gpu_windows.zip/" if way == "py-files" else str(tmp_path / "cluster")
        assert worker["package"].startswith(place)
    (kept,) = {worker["cache"] for worker in found["workers"]}
    assert Path(kept).parent == tmp_path / "cache" / "gpu_windows" / "kernels"
    compiled = [path.name for path in Path(kept).rglob("*.nbc")]
    assert len(compiled) == len(set(compiled)) > 5  # by one of the executors, whatever its folder


def test_spark_connect(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", workers=2) as cluster,
        served(cluster, tmp_path) as remote,
    ):
        found = run_job(remote)
    assert (found["batch"], found["stream"]) == totals()


def test_a_stream_goes_on_with_more_executors(tmp_path: Path) -> None:
    whole = undisturbed_stream(LATE, tmp_path / "late", 6, 300)
    with Cluster(tmp_path / "cluster") as cluster:
        found = scaled(cluster, LATE, whole, (1, 3))
    assert found.seen == {"executors of start 0": 1, "executors of start 1": 3}
    assert (found.lost, found.more) == (0, 0)
    assert shards(whole) == shards(tmp_path / "late-scaled")
