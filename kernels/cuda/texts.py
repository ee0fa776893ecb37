"""Strings on the device: the one file that knows pylibcudf.

Everything is asked for on the session's stream, so it comes after what was copied there and before
the kernels that take it. What libcudf did on the legacy default stream in spite of that would be in
order as well: the session's is a blocking stream (`gpu_windows.kernels.cuda.session`), which waits
for the legacy stream as that waits for it. Only a per-thread default stream
(``CUDF_PER_THREAD_STREAM``) would not be, which is another reason to name ours.

libcudf allocates from RMM's current resource, not from the session's pool: neither the limit of
that pool nor ``GPU_WINDOWS_DEVICE_MEMORY`` counts what strings take while a batch is encoded, about
their bytes and 12 more a row, besides a hash table. It is given back at the end of the call. Where
RAPIDS made a pool for the process, both are that one. RMM says that memory ran out by a
MemoryError, as CuPy does.
"""

from __future__ import annotations

import importlib
import logging
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows.kernels.contract.arrays import ArrowArray, DeviceInts
from gpu_windows.kernels.cuda.session import Session, working

logger = logging.getLogger(__name__)

#: libcudf counts the rows of a column in 32 bits, and one more.
_MAX_ROWS = 2**31 - 2
#: As what Arrow's types go to libcudf, which takes no binary. It compares bytes.
_SENT_AS = {
    pa.string(): pa.string(),
    pa.large_string(): pa.large_string(),
    pa.binary(): pa.string(),
    pa.large_binary(): pa.large_string(),
}


@cache
def library() -> Any:
    """Return pylibcudf, or None where it cannot be used; say why."""
    try:
        return importlib.import_module("pylibcudf")
    except (ImportError, OSError, RuntimeError) as error:  # CUDA's are RuntimeErrors
        logger.info("strings are encoded on the host: pylibcudf cannot be imported (%s)", error)
        return None


def encode(column: ArrowArray) -> tuple[ArrowArray, DeviceInts] | None:
    """Return the distinct strings or binary of a column, and where each row's is among them.

    Parameters
    ----------
    column : pyarrow.Array
        Of at least one row.

    Returns
    -------
    (pyarrow.Array of k, int64[n] on the device) or None
        The values, null being one of them, in libcudf's order; None without pylibcudf, for
        columns of another type or of more rows than it takes, and where its memory runs out, also
        after the session's pool has given back what no array uses: halves of a batch would ask
        libcudf again and again, which no limit of ours knows.
    """
    found = library()
    if found is None or column.type not in _SENT_AS or len(column) > _MAX_ROWS:
        return None
    sent = column.view(_SENT_AS[column.type])
    with working() as session:
        made = _try_encode(found, session, sent)
        if made is None:
            session.release()
            made = _try_encode(found, session, sent)
    if made is None:
        logger.warning("libcudf has no room for %d strings: the host encodes them", len(column))
        return None
    values, indices = made
    return _with_type(values, column.type), indices


def _try_encode(
    library: Any, session: Session, column: ArrowArray
) -> tuple[ArrowArray, DeviceInts] | None:
    """Return None if memory runs out; the error, which holds what failed, has been released."""
    try:
        return _encode(library, session, column)
    except MemoryError as error:
        logger.info("out of device memory for strings: %s", str(error))
        return None


def _encode(library: Any, session: Session, column: ArrowArray) -> tuple[ArrowArray, DeviceInts]:
    stream = session.stream
    there = library.Column.from_arrow(column, stream=stream)
    distinct, indices = library.transform.encode(library.Table([there]), stream=stream)
    numbers = session.arrays.asarray(indices.data()).view(np.int32)  # what it has are bytes
    begin = indices.offset()
    places = numbers[begin : begin + indices.size()].astype(np.int64)
    return distinct.columns()[0].to_arrow(stream=stream), places  # waits for all before it


def _with_type(values: ArrowArray, dtype: pa.DataType) -> ArrowArray:
    """Return strings that libcudf made as a column's type: it chooses how long offsets are."""
    return values.cast(_SENT_AS[dtype]).view(dtype)
