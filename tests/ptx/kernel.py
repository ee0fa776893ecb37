"""A kernel's PTX, run over a grid of threads on this CPU."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from numba import types

from tests.ptx.arrays import written_bytes
from tests.ptx.build import library_of

#: Kinds of findings, as `machine/launch.h` has them. The first ones end a launch.
FAULTS = (
    "an access outside of all arrays", "an access that is not aligned",
    "a load of what nothing wrote", "threads of a block that part at a barrier",
    "threads of a block at two barriers",
)  # fmt: skip
RACES = (
    "a read and a write", "writes that differ", "writes of the same", "an atomic and a read",
    "an atomic and a write",
)  # fmt: skip
_KINDS = (*FAULTS, *RACES)
#: Of an array of a launch: its items, bytes of one, and address stand after two words of others.
_ARRAY_WORDS, _ITEMS, _WIDTH, _ADDRESS = 7, 2, 3, 4
#: Different findings of a launch.
_ROOM = 256


class Mode(IntEnum):
    """In which order threads run, and what is looked for besides.

    Attributes
    ----------
    PLAIN
        One after the other, from barrier to barrier.
    RACES
        So, and accesses of two threads to an address that no barrier orders are noted, which does
        not depend on the order.
    TURNS
        All threads of all blocks take turns by chance, before each access.
    WEAK
        So, and plain stores reach memory late and in any order, until a fence or a barrier; every
        second thread sees memory as it was when the launch began, until then.
    WARPS
        32 threads in lockstep, and what they ask of memory is counted.
    """

    PLAIN, RACES, TURNS, WEAK, WARPS = range(5)


class KernelFaultError(AssertionError):
    """A kernel did what none may: a launch on a device would be undefined."""


class Race(NamedTuple):
    """Two accesses to an address that nothing orders.

    Parameters
    ----------
    kernel : str
    kind : str
        Of `RACES`.
    site, other : str
        The PTX of the later one, and of the earlier one.
    """

    kernel: str
    kind: str
    site: str
    other: str


class Counts(ctypes.Structure):
    """What the warps of a launch asked of global memory, in `Mode.WARPS`.

    Attributes
    ----------
    instructions, warp_instructions : int
        Of PTX, of all threads; and of warps, of the thread that had most to do.
    asked, sectors, lanes : array of 3 int
        Of reads, writes and atomics: bytes, sectors of 32 bytes, and how many threads.
    touched : array of 2 int
        Sectors that any thread read, and wrote.
    """

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("instructions", "warp_instructions")),
        *((name, ctypes.c_uint64 * 3) for name in ("asked", "sectors", "lanes")),
        ("touched", ctypes.c_uint64 * 2),
    )


class _Finding(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int32) for name in ("kind", "site", "other", "thread", "block", "_")),
        *((name, ctypes.c_uint64) for name in ("count", "address")),
    )


class _Given(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("low", "items", "width")),
        ("written", ctypes.c_void_p),
    )


class _Request(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("threads", "blocks", "mode", "backwards")),
        ("seed", ctypes.c_uint64),
        ("parameters", ctypes.c_void_p),
        ("given_count", ctypes.c_uint64),
        ("given", ctypes.POINTER(_Given)),
        ("room", ctypes.c_uint64),
        ("found_count", ctypes.c_uint64),
        ("found", ctypes.POINTER(_Finding)),
        ("counts", ctypes.POINTER(Counts)),
    )


@dataclass(frozen=True)
class Order:
    """How a grid is run.

    Attributes
    ----------
    mode : Mode
    seed : int
        Of chance, in `Mode.TURNS` and `Mode.WEAK`.
    backwards : bool
        Whether the last block and its last thread are the first, in the other modes.
    """

    mode: Mode = Mode.PLAIN
    seed: int = 0
    backwards: bool = False


def array_places(signature: Iterable[Any]) -> list[int]:
    """Return which words of a launch begin an array, as a kernel of a signature takes them."""
    places, word = [], 0
    for kind in signature:
        for part in kind if isinstance(kind, types.BaseNamedTuple) else (kind,):
            is_array = isinstance(part, types.Array)
            places += [word] if is_array else []
            word += _ARRAY_WORDS if is_array else 1
    return places


class PtxKernel:
    """A kernel for one signature, ready to run.

    Parameters
    ----------
    name : str
        For messages.
    text : str
        Its PTX.
    places : list of int
        As `array_places` gives them.

    Attributes
    ----------
    races : Counter of Race
        How often each was met; in `Mode.RACES` alone.
    """

    def __init__(self, name: str, text: str, places: list[int]) -> None:
        self.name, self.races = name, Counter[Race]()
        self._places, self._text = places, text
        self._run, self._translation = library_of(text)

    def run(self, blocks: int, threads: int, parameters: int, order: Order) -> Counts:
        """Run all threads of a grid.

        Parameters
        ----------
        blocks, threads : int
        parameters : int
            Address of an array with the address of every argument, as ``cuLaunchKernel`` takes it.
        order : Order

        Returns
        -------
        Counts
            All 0 but in `Mode.WARPS`.

        Raises
        ------
        KernelFaultError
            If a thread does what `FAULTS` says; the launch ends there.
        """
        given = [self._array(parameters, place) for place in self._places]
        found, counts = (_Finding * _ROOM)(), Counts()
        arrays = (_Given * max(len(given), 1))(*given)
        request = _Request(
            threads, blocks, order.mode, order.backwards, order.seed, parameters, len(given),
            arrays, _ROOM, 0, found, ctypes.pointer(counts),
        )  # fmt: skip
        run = self._run if order.mode != Mode.WARPS else library_of(self._text, counting=True)[0]
        run(ctypes.byref(request))
        for one in found[: request.found_count]:
            self._note(one)
        return counts

    @staticmethod
    def _array(parameters: int, place: int) -> _Given:
        """Return an array of a launch, from the words that the driver would copy."""

        def word(number: int) -> int:
            at = ctypes.c_uint64.from_address(parameters + 8 * (place + number)).value
            return ctypes.c_uint64.from_address(at).value

        address = word(_ADDRESS)
        return _Given(address, word(_ITEMS), word(_WIDTH), written_bytes(address))

    def _note(self, one: _Finding) -> None:
        sites = self._translation.sites
        site, other = sites[one.site], sites[one.other]
        if one.kind < len(FAULTS):
            where = f"thread {one.thread} of block {one.block}, address {one.address:#x}"
            raise KernelFaultError(f"{self.name}: {FAULTS[one.kind]}, by {site!r}, {where}")
        self.races[Race(self.name, _KINDS[one.kind], site, other)] += one.count
