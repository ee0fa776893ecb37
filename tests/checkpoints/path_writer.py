"""A path of results without Spark: the sums of `tests.spark_glue.drivers.Job`, in its records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu_windows.commits.path_log import NOTHING, PathLog
from gpu_windows.commits.records import Commit, Owner
from gpu_windows.errors import OutputError
from gpu_windows.spark_glue.files.local_marker_files import read_local_markers, write_local_marker


class PathWriter:
    """Writes records to a path that belongs to a lineage, which is read when a query starts."""

    def __init__(self, path: Path, lineage: str) -> None:
        self.path = path
        owners = sorted(
            (Owner.from_text(text) for each in self._owners() for text in read_local_markers(each)),
            key=lambda owner: owner.generation,
        )
        if not owners:
            owners = [Owner(0, lineage, {})]
            write_local_marker(path / owners[0].folder, owners[0].text)
        self.owner = owners[-1]
        if self.owner.query != lineage:
            raise OutputError("the path holds results of a query with another checkpoint")

    def write(self, batch: Any) -> None:
        """Write a record of a micro-batch, whose number of rows is the sum, if there is none."""
        (total,) = batch.read("result", None)
        record = Commit(self.owner.generation, batch.number, int(total), {})
        if not write_local_marker(self.path / record.folder, record.text):
            assert [record.text] == read_local_markers(self.path / record.folder)

    def _owners(self) -> list[Path]:
        folder = self.path / "owners"
        return sorted(folder.iterdir()) if folder.exists() else []


def read_sums(path: Path) -> list[tuple[int, int]]:
    """Return the numbers of the micro-batches at a path, and their sums, in order."""
    return [(each.number, each.rows) for each in PathLog(path.as_uri()).between(NOTHING)]
