"""Target of a write of a bounded query, as given by the user, and its outcome."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, Self, get_args

import pyarrow as pa

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.checkpointing.store_options import Setting
from gpu_windows.errors import CheckpointError, InvalidOptionError, OutputError, QueryError
from gpu_windows.operators.counters import Counters

#: How to treat an earlier write to the path.
Mode = Literal["error", "overwrite"]
#: Spark's names of compressions to PyArrow's.
CODECS: Mapping[str, str] = {
    "none": "NONE",
    "uncompressed": "NONE",
    "snappy": "SNAPPY",
    "gzip": "GZIP",
    "zstd": "ZSTD",
    "brotli": "BROTLI",
    "lz4_raw": "LZ4",
}


@contextmanager
def path_errors_of_results() -> Iterator[None]:
    """Raise errors about locations of checkpoints as `OutputError` about a path of results."""
    try:
        yield
    except CheckpointError as error:
        rule = error.rule.replace("a checkpoint", "a path of results")
        raise OutputError(rule, value=error.value) from error


@dataclass(frozen=True)
class WriteTarget:
    """Arguments of `Outputs.write_parquet`: path, mode and compression.

    Parameters
    ----------
    path : str or os.PathLike
    mode : {"error", "overwrite"}
    compression : str, optional
        As Spark calls it. None: the session's.

    Raises
    ------
    QueryError
        If one is something else.
    """

    path: str | PathLike[str]
    mode: Mode = "error"
    compression: str | None = None

    def __post_init__(self) -> None:
        path: Any = self.path
        if not isinstance(path, str | PathLike) or not str(path):
            raise QueryError("a path is a str or os.PathLike", value=repr(path))
        if self.mode not in get_args(Mode):
            rule = 'mode is "error" or "overwrite"; to add to results, run a streaming query'
            raise InvalidOptionError(rule, value=repr(self.mode))
        if self.compression is not None:
            codec_of(self.compression)

    def open(self, setting: Setting | None = None) -> CheckpointFiles:
        """Return the files of the path; nothing is read or written yet.

        Raises
        ------
        OutputError
            If it is in a store that is not supported.
        """
        with path_errors_of_results():
            return open_checkpoint(self.path, setting)


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written: its name in its folder, its rows and its bytes."""

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class WrittenParquet:
    """Outcome of `gpu_windows.typing.Outputs.write_parquet`.

    Parameters
    ----------
    path : str
        For `gpu_windows.read_output`.
    files : tuple of str
        Paths or URLs of the Parquet files, which any reader may be given; none where there are no
        results.
    rows, bytes : int
        Of all files.
    written_by : str
        ``"tasks"`` of Spark by Arrow, ``"spark"``, or ``"process"``: the local runner.
    counters : dict of str to int, optional
        Those of `Outputs.metrics`. None where Spark has written: ask for `metrics`.
    user_counters : dict of str to int
        Of user code.

    Examples
    --------
    >>> import tempfile
    >>> users = gw.stream(pa.table({"user": ["ann", "ann"]})).key_by("user")
    >>> outputs = users.count_window(2).with_outputs().aggregate(n=gw.count())
    >>> written = outputs.write_parquet(tempfile.mkdtemp() + "/counts")
    >>> written.rows, len(written.files), written.written_by
    (1, 1, 'process')
    """

    path: str
    files: tuple[str, ...] = field(repr=False)
    rows: int
    bytes: int
    written_by: str
    counters: Mapping[str, int] | None = None
    user_counters: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        path: str,
        files: tuple[str, ...],
        written: Collection[WrittenFile],
        written_by: str,
        counters: Counters | None,
    ) -> Self:
        """Return the outcome for written files and counters.

        Parameters
        ----------
        path : str
        files : tuple of str
            Names of the files.
        written : collection of WrittenFile
            Rows and bytes of each file.
        written_by : str
        counters : Counters, optional
            Counters of the query.
        """
        rows, size = (sum(getattr(each, n) for each in written) for n in ("rows", "bytes"))
        if counters is None:
            return cls(path, files, rows, size, written_by)
        own = {name: getattr(counters, name) for name in counters.names()}
        return cls(path, files, rows, size, written_by, own, dict(counters.user))


def codec_of(compression: str) -> str:
    """Return PyArrow's name of a compression, given Spark's.

    Raises
    ------
    InvalidOptionError
        If there is none of this name, or it is not in this PyArrow.
    """
    given: object = compression
    codec = CODECS.get(given.lower()) if isinstance(given, str) else None
    if codec is None:
        rule = f"compression is one of {', '.join(CODECS)}"
        raise InvalidOptionError(rule, value=repr(compression))
    if codec != "NONE" and not pa.Codec.is_available(codec.lower()):
        rule = "this PyArrow was built without it: choose another compression"
        raise InvalidOptionError(rule, value=repr(compression))
    return codec
