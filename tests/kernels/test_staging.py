"""Staged moves give the right bytes whenever streams, threads and kernels do their work.

The device is a stand-in (`tests.kernels.pretend_streams`). Any wait that is taken out of the module
must show.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.kernels.cuda import primitives, session, staging
from gpu_windows.kernels.lazy_array import Pieces
from tests.examples import examples
from tests.kernels.pretend_session import session_of
from tests.kernels.pretend_streams import Array, Pace, Pretended

#: As late as possible, at random, as early as possible.
CHANCES = (0.0, 0.3, 0.6, 0.9, 1.0)
CHUNK, MIN = 64, 32
DTYPES = (np.int8, np.int16, np.int32, np.int64, np.float64)


class Scenario:
    """Moves and kernels at random, and what they should make.

    Parameters
    ----------
    module : module
        Staging.
    random : Random
    """

    def __init__(self, module: ModuleType, random: Random) -> None:
        self._module, self._random = module, random
        self._library = Pretended(Pace(random.choice(CHANCES), random))
        self._staging = module.Staging(
            self._library,
            self._library.kernels,
            chunk_bytes=CHUNK,
            chunks=random.randint(1, 4),
            min_bytes=MIN,
            threads=random.randint(1, 3),
        )
        self._arrays: list[tuple[Array, Any]] = []
        self._uploads: list[tuple[Any, Any]] = []
        self._landed: list[Any] = []
        self._seen: list[tuple[Any, Any]] = []

    def run(self) -> None:
        """Do some work and compare."""
        steps = (
            self._up,
            self._up_pieces,
            self._up_for_later,
            self._land,
            self._drop_upload,
            self._down,
            self._kernel,
            self._look,
            self._drop,
            self._fail,
        )
        with patch.object(self._module, "ThreadPoolExecutor", self._library.threads):
            for _ in range(self._random.randint(1, 12)):
                self._random.choice(steps)()
        self._library.finish()
        for found, expected in self._seen:
            np.testing.assert_array_equal(found, expected)
        for array, expected in self._arrays:
            np.testing.assert_array_equal(array.values, expected)
        self._staging.release()
        assert self._library.pinned == 0

    def _host(self) -> Any:
        size, dtype = self._random.randint(1, 12 * CHUNK), self._random.choice(DTYPES)
        values = np.random.default_rng(self._random.getrandbits(32)).integers(0, 100, size)
        strided = np.zeros((size, 2), dtype)
        strided[:, 0] = values
        kinds = strided[:, 0].copy(), strided[:, 0], strided[::-1, 0]
        return self._random.choice(kinds)

    def _pieces(self) -> Pieces:
        """Return an array in pieces of one narrower type, which are here and there in memory."""
        stored = self._random.choice((np.int8, np.uint8))
        sizes = [self._random.randint(1, 2 * CHUNK) for _ in range(self._random.randint(1, 6))]
        random = np.random.default_rng(self._random.getrandbits(32))
        parts = [random.integers(0, 100, size).astype(stored) for size in sizes]
        return Pieces(parts, self._random.choice(DTYPES))

    def _up(self) -> None:
        host = self._host()
        expected = host.copy()
        there = _to_device(self._staging, host)
        host[:] = 111  # its owner may do so once the call returns
        assert (there is None) == (expected.nbytes < MIN)
        if there is not None:
            self._arrays.append((there, expected))

    def _up_pieces(self) -> None:
        pieces = self._pieces()
        expected = np.concatenate(pieces.parts).astype(pieces.dtype)
        there = _to_device(self._staging, pieces)
        for part in pieces.parts:
            part[:] = 111
        assert (there is None) == (expected.nbytes < MIN)
        if there is not None:
            self._arrays.append((there, expected))

    def _up_for_later(self) -> None:
        host = self._host()
        expected = host.copy()
        begun = self._staging.upload(host)
        host[:] = 111
        if begun is not None:
            self._uploads.append((begun, expected))

    def _land(self) -> None:
        """Take an array that is on its way."""
        if self._uploads:
            begun, expected = self._uploads.pop(self._random.randrange(len(self._uploads)))
            self._arrays.append((begun.land(), expected))
            self._landed.append(begun)

    def _drop_upload(self) -> None:
        """Forget an array that may still be on its way, and give its memory to a kernel."""
        if self._uploads:
            expected = self._uploads.pop(self._random.randrange(len(self._uploads)))[1]
            there = self._library.empty(len(expected), expected.dtype)
            values, written = there.values, expected + 1
            self._library.launch(lambda: np.copyto(values, written))
            self._arrays.append((there, written.copy()))

    def _pick(self) -> tuple[Array, Any] | None:
        return self._random.choice(self._arrays) if self._arrays else None

    def _down(self) -> None:
        picked = self._pick()
        if picked is not None:
            found = self._staging.to_host(picked[0])
            assert (found is None) == (picked[0].nbytes <= CHUNK)
            if found is not None:
                np.testing.assert_array_equal(found, picked[1])
                assert found.dtype == picked[1].dtype

    def _kernel(self) -> None:
        """Change an array in place."""
        picked = self._pick()
        if picked is not None:
            values, expected = picked[0].values, picked[1]
            self._library.launch(lambda: _count_up(values))
            _count_up(expected)

    def _look(self) -> None:
        """Have a kernel look at an array."""
        picked = self._pick()
        if picked is not None:
            values, expected = picked[0].values, picked[1].copy()
            self._library.launch(lambda: self._seen.append((values.copy(), expected)))

    def _drop(self) -> None:
        """Forget an array that kernels may still have to do with."""
        if self._arrays:
            self._kernel()
            self._arrays.pop(self._random.randrange(len(self._arrays)))

    def _fail(self) -> None:
        """Have a transfer fail."""
        self._library.fails_at = self._random.randint(0, 5)
        host, picked = self._host(), self._pick()
        try:
            if picked is not None and self._random.random() < 0.5:
                self._staging.to_host(picked[0])
            else:
                _to_device(self._staging, host)
        except RuntimeError:
            assert self._library.still()
        self._library.fails_at = -1


def _to_device(moves: Any, array: Any) -> Any:
    """Return an array on the device, or None if it must go the plain way."""
    begun = moves.upload(array)
    return None if begun is None else begun.land()


def _count_up(values: Any) -> None:
    values += 1


@examples(400)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_bytes_are_right_whenever_work_is_done(seed: int) -> None:
    Scenario(staging, Random(seed)).run()


#: What waits for something: where it is, and what is left without it.
WAITS = {
    "the host, before it fills a chunk again": (
        "            chunk.moved.synchronize()\n            chunk.copying",
        "            chunk.copying",
    ),
    "a transfer, for the copy that fills its chunk": (
        "        chunk.join()\n        sides = address",
        "        sides = address",
    ),
    "transfers to the device, for kernels that had its memory": (
        "        self._wait_for_kernels()\n        groups = _cut",
        "        groups = _cut",
    ),
    "transfers to the host, for kernels that write the array": (
        "        self._wait_for_kernels()\n        for begin, chunk in zip(range(0, len(here)",
        "        for begin, chunk in zip(range(0, len(here)",
    ),
    "transfers, for kernels: too early": (
        "        self._before.record(self._kernels)\n        self._copies.wait_event(self._before)",
        "        self._copies.wait_event(self._before)\n        self._before.record(self._kernels)",
    ),
    "kernels, for the last transfer": (
        "            self._landing()  # once\n",
        "            pass\n",
    ),
    "kernels, for the last transfer: too early": (
        "            self._send(*sending.popleft())\n        landed = self._cuda.Event("
        "disable_timing=True)\n        landed.record(self._copies)",
        "            landed = self._cuda.Event(disable_timing=True)\n            landed.record("
        "self._copies)\n            self._send(*sending.popleft())",
    ),
    "kernels, for transfers into memory that they get": (
        "            self._landing = weakref.finalize(self, _wait, kernels, landed, array)",
        "            self._landing = lambda: _wait(kernels, landed, array)",
    ),
    "the host, for what comes": (
        "        chunk.moved.synchronize()\n        chunk.copying",
        "        chunk.copying",
    ),
    "a transfer, for the copy that empties its chunk": (
        "            chunk.join()\n            sides = chunk",
        "            sides = chunk",
    ),
    "the last copies on the host": (
        "        for chunk in self._chunks:\n            chunk.join()",
        "",
    ),
    "an error": ("            self._close()\n            raise", "            raise"),
    "an error, for transfers": ("        self._copies.synchronize()\n", ""),
    "an error, for threads": ("self._pool.shutdown()", "pass"),
    "too many pieces ahead": ("len(self._chunks) - 2)", "len(self._chunks))"),
    "too many pieces to come": ("len(self._chunks) // 2:", "len(self._chunks):"),
}


def _without(tmp_path: Path, wait: str) -> ModuleType:
    """Return the module without a wait."""
    source, (there, left) = "\n" + inspect.getsource(staging), WAITS[wait]
    if there.startswith(" "):  # whole lines
        there, left = f"\n{there}", f"\n{left}"
    assert source.count(there) == 1, there
    path = tmp_path / "shortened.py"
    path.write_text(source.replace(there, left))
    spec = importlib.util.spec_from_file_location("shortened", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(module: ModuleType, seeds: range) -> None:
    for seed in seeds:
        Scenario(module, Random(seed)).run()


@pytest.mark.parametrize("wait", WAITS)
def test_every_wait_is_needed(tmp_path: Path, wait: str) -> None:
    module = _without(tmp_path, wait)
    with pytest.raises(AssertionError):
        _run(module, range(500))


# ---- what goes the plain way, and whose the memory is


def _staging(**named: Any) -> tuple[staging.Staging, Pretended]:
    library = Pretended(Pace(0.0, Random(1)))
    sizes = {"chunk_bytes": CHUNK, "chunks": 2, "min_bytes": MIN, "threads": 2} | named
    return staging.Staging(library, library.kernels, **sizes), library


@pytest.mark.parametrize(
    "array",
    [
        np.arange(3),
        np.zeros((10, 10)),
        np.zeros(100, ">i8"),
        np.zeros(100, "M8[us]"),
        np.zeros(100, np.longdouble),
        np.zeros(100, object),
        np.ma.MaskedArray(np.arange(100)),
        np.zeros(100).view(np.recarray),
    ],
    ids=lambda array: f"{type(array).__name__} {array.dtype} {array.shape}",
)
def test_what_is_small_or_no_column_goes_the_plain_way(array: Any) -> None:
    moves, library = _staging()
    assert _to_device(moves, array) is None
    assert library.pinned == 0


def test_what_is_on_the_device_stays_and_what_is_no_array_of_it_is_not_taken() -> None:
    moves, library = _staging()
    there = _to_device(moves, np.arange(100))
    assert there is not None
    assert _to_device(moves, there) is None  # as CuPy takes it: no copy
    assert moves.to_host(np.arange(100)) is None
    there.flags.c_contiguous = False
    assert moves.to_host(there) is None
    library.finish()


@pytest.mark.parametrize("piece", [0, 1, 3])
def test_without_pinned_memory_all_goes_the_plain_way(
    piece: int, caplog: pytest.LogCaptureFixture
) -> None:
    moves, library = _staging(chunks=4)
    there = library.empty(100, np.int64)
    library.refuses = piece
    assert _to_device(moves, np.arange(100)) is None
    assert moves.to_host(there) is None
    library.refuses = -1
    assert _to_device(moves, np.arange(100)) is None
    assert library.pinned == 0
    assert caplog.messages == [
        "arrays move through memory that is not pinned: cudaErrorMemoryAllocation: out of memory"
    ]


def test_no_room_on_the_device_is_no_error_of_the_ring() -> None:
    moves, library = _staging()
    assert _to_device(moves, np.arange(100)) is not None
    pinned, library.empty = library.pinned, _no_room  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        _to_device(moves, np.arange(100))
    assert library.pinned == pinned == 2 * CHUNK


def _no_room(size: int, dtype: Any) -> Array:
    raise MemoryError(f"no room for {size} of {dtype}")


def test_memory_is_pinned_by_the_first_move_and_given_back() -> None:
    moves, library = _staging()
    moves.release()
    for _ in range(2):
        assert library.pinned == 0
        there = _to_device(moves, np.arange(100))
        assert library.pinned == 2 * CHUNK
        assert there is not None
        found = moves.to_host(there)
        np.testing.assert_array_equal(found, np.arange(100))
        moves.release()
    assert library.pinned == 0


def test_one_core_copies_in_the_thread_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("no pool of threads is needed")

    monkeypatch.setattr(staging, "ThreadPoolExecutor", refuse)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert staging.copying_threads() == 1
    moves, _ = _staging(threads=None)
    there = _to_device(moves, np.arange(100))
    assert there is not None
    np.testing.assert_array_equal(moves.to_host(there), np.arange(100))


def test_threads_of_a_process_move_one_after_the_other() -> None:
    moves, _ = _staging(chunk_bytes=1 << 12, chunks=3)

    def there_and_back(seed: int) -> bool:
        values = np.random.default_rng(seed).integers(0, 2**62, 5_000 + seed)
        there = _to_device(moves, values)
        back = moves.to_host(there)
        assert back is not None
        return np.array_equal(back, values)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(there_and_back, range(60)))
    moves.release()


def test_primitives_stage_what_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    moves, library = _staging()
    plain = SimpleNamespace(
        asarray=np.array, ascontiguousarray=np.ascontiguousarray, asnumpy=np.array
    )
    opened = session_of(plain, staging=moves)
    monkeypatch.setattr(session, "_session", lambda *_: opened)
    large, small = primitives.to_device(np.arange(100)), primitives.to_device(np.arange(3))
    assert isinstance(large, Array)
    assert isinstance(small, np.ndarray)
    np.testing.assert_array_equal(primitives.to_host(large), np.arange(100))
    np.testing.assert_array_equal(primitives.to_host(small), np.arange(3))
    library.finish()
