"""What a micro-batch costs a shard whose state is in a store of objects: S3 of moto, on loopback.

``python -m benchmarks.remote_state``: entries of keys, as windows have them, of which a micro-batch
touches a few. The store answers each request late. Once blocks of files are on the local disk, as
on an executor that had the shard before, and once none are.
"""

from __future__ import annotations

import logging
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from gpu_windows.checkpointing.object_files import ObjectFiles
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.keyed_table import HASH, TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.rules import LONG_MAX
from tests.checkpointing.s3_server import Faults, Request, S3Server, count_rounds, serve_s3

Ints = NDArray[np.int64]

#: Keys that a micro-batch brings while the state is filled, and bytes of the value of a key.
_FILLED, _VALUE_BYTES = 50_000, 200

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Cost:
    """What a micro-batch costs.

    Parameters
    ----------
    requests : tuple of Request
    seconds : float
    """

    requests: tuple[Request, ...]
    seconds: float

    @property
    def kinds(self) -> str:
        """How many requests there are of each method."""
        counts = Counter(each.method for each in self.requests)
        return ", ".join(f"{count} {method}" for method, count in sorted(counts.items()))


class Shard:
    """A shard whose state grows in a bucket.

    Parameters
    ----------
    server : S3Server
    """

    def __init__(self, server: S3Server) -> None:
        self._server, self._bucket = server, server.make_bucket()
        self._files = ObjectFiles(f"s3://{self._bucket}/checkpoint/gpu_windows", server.options)
        self._newest: str | None = None
        self._live: tuple[str, ...] = ()
        self._rng = np.random.default_rng(7)
        self.size = self.keys = 0

    def touch(self, keys: Ints) -> None:
        """Run a micro-batch that changes some keys."""
        log = StateLog(self._files, self._newest)
        table = KeyedTable(log, "windows")
        hashes = (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)
        table.load(hashes)
        values = [self._rng.bytes(_VALUE_BYTES) for _ in keys]
        columns = {"key0": keys, "value": values, HASH: hashes}
        columns |= dict.fromkeys(TIMERS, np.full(len(keys), LONG_MAX))
        table.save(Entries(pa.table(columns)))
        self._newest = log.finish(f"state/00-00000/{uuid4().int % 10**12:012}-{uuid4().hex}")
        self._files.delete_all([name for name in self._live if name not in log.live_files])
        self._live, self.size, self.keys = log.live_files, log.live_size, table.keys

    def fill(self, size: float) -> None:
        """Bring new keys until the state has so many bytes."""
        while self.size < size:
            self.touch(np.arange(self.keys, self.keys + _FILLED))

    def measure(self, touched: int, delay_s: float) -> Cost:
        """Return what a micro-batch costs that touches some keys."""
        self._server.faults = Faults(delay_s=delay_s)
        self._server.answered.clear()
        keys = np.unique(self._rng.integers(0, self.keys, touched))
        began = time.perf_counter()
        self.touch(keys)
        seconds = time.perf_counter() - began
        self._server.faults = Faults()
        return Cost(tuple(self._server.answered), seconds)


@app.command()
def main(
    megabytes: Annotated[int, typer.Option(help="State of the shard.")] = 256,
    touched: Annotated[int, typer.Option(help="Keys of a micro-batch.")] = 100,
    delay_ms: Annotated[int, typer.Option(help="By which an answer is late.")] = 20,
    turns: Annotated[int, typer.Option(help="Micro-batches that count.")] = 5,
) -> None:
    """Measure requests and time of micro-batches, with blocks on the local disk and without."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    names = (
        "blocks on disk",
        "requests",
        "of the last one",
        "rounds",
        "bytes read",
        "written",
        "ms",
    )
    table = Table(*names)
    with (
        serve_s3() as server,
        TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SPARK_LOCAL_DIRS", folder)
        shard = Shard(server)
        shard.fill(megabytes * 1e6)
        for has_blocks in (True, False):
            found = []
            for _ in range(turns):
                if not has_blocks:
                    for path in Path(folder).iterdir():
                        shutil.rmtree(path)
                        path.mkdir(mode=0o700)
                found.append(shard.measure(touched, delay_ms / 1_000))
            table.add_row("yes" if has_blocks else "no", *_medians(found))
    title = f"{decimal(shard.size)}, {shard.keys:,} keys"
    table.title = title
    Console(width=120).print(table)


def _medians(costs: Sequence[Cost]) -> list[str]:
    """Return medians of requests, rounds, bytes and milliseconds, as a table has them."""

    def median(value: Callable[[Cost], float]) -> float:
        return statistics.median(map(value, costs))

    return [
        f"{median(lambda cost: len(cost.requests)):.0f}",
        costs[-1].kinds,
        f"{median(lambda cost: count_rounds(cost.requests)):.0f}",
        decimal(round(median(lambda cost: sum(each.sent for each in cost.requests)))),
        decimal(round(median(lambda cost: sum(each.received for each in cost.requests)))),
        f"{median(lambda cost: cost.seconds) * 1e3:.0f}",
    ]


if __name__ == "__main__":
    app()
