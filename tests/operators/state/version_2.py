"""Slices as version 2 of the format had them: a blob for each bucket, numbered by the bucket."""

from __future__ import annotations

import struct
import zlib

import pyarrow as pa
import pytest

from gpu_windows.operators.device import Kernels
from gpu_windows.operators.slices.stored import alive
from gpu_windows.operators.slices.table import SliceTable
from gpu_windows.operators.state import store as stores
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.plan import SLICE, WindowPlan


def blob_of(table: pa.Table, version: int) -> bytes:
    """Return a table as versions until 3 wrote it: each column is compressed by itself."""
    sink = pa.BufferOutputStream()
    columns = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=columns) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return struct.pack("<4sII", b"gpuw", version, zlib.crc32(data)) + data


def as_version_2(plan: WindowPlan, store: MemoryStore) -> MemoryStore:
    """Return what version 2 would hold in place of a store, in which an operator has saved."""
    found = MemoryStore()
    head = store.load("head", 0)
    if head is None:
        return found
    told = head.schema.metadata
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "to_blob", lambda table: blob_of(table, 2))
        index: list[dict[str, int]] = []
        for bucket in sorted(set(head["bucket"].to_pylist())):
            table = SliceTable(plan, Kernels("cpu"))
            mine = pa.compute.equal(head["bucket"], bucket)
            for number in head["number"].filter(mine).to_pylist():
                blob = store.load_listed("slices", number)
                table.add_partials(alive(blob, int(told[b"live"])))
            whole = table.to_arrow(table.entries())
            whole = whole.replace_schema_metadata({b"start": b"0", b"end": b"1"})
            found.save("slices", bucket, whole)
            least = pa.compute.min(whole[SLICE]).as_py()
            index.append({"bucket": bucket, "entries": len(whole), "least": least})
        schema = pa.schema([(name, pa.int64()) for name in ("bucket", "entries", "least")])
        numbers = {name: told[name] for name in (b"watermark", b"fired", b"width")}
        listed = pa.Table.from_pylist(index, schema=schema)
        found.save("head", 0, listed.replace_schema_metadata(numbers))
    return found
