"""The page of what kernels take (docs/ptxas.md): written, read, and compared with what they do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.kernels.usage import Usage

#: Kernel, lane and architecture.
Place = tuple[str, str, str]


#: Compilers differ from version to version: a number may be off by this share, or by so much.
SHARE, AMOUNT = 0.10, 4

_INTRODUCTION = """\
# What the CUDA kernels take

Made by `python -m tests.kernels.ptx_report --markdown docs/ptxas.md` from the PTX that Numba makes,
with ptxas {version} and nvdisasm, without a GPU. `make check` compiles everything anew, and counts
the instructions of sm_90a; `make nightly` counts those of all. They fail where a number here is off
by more than {share:.0%} and more than {amount}, and where registers or spills are out of the bounds
in `tests/kernels/test_ptx.py`.
"""

_REGISTERS = """\
## Registers and spills

Registers a thread. {count} compilations, {spilling} with spills (shown as +stores/loads, in bytes).
"""

_INSTRUCTIONS = """\
## Instructions

Machine instructions of the largest loop and, in parentheses, of the whole kernel. In most kernels
that loop is the one over the items, with one row or entry a pass. It holds the loops within it,
both sides of its branches and the functions that it calls (64-bit division is one), each
instruction once. Where ptxas unrolled the loop, a pass is several items. Where the compiler made
versions of it for cases, such as columns without nulls, the largest counts. What is outside the
loop is done once a thread, of which there are at most 1,048,576.
"""


def to_markdown(usages: Sequence[Usage], version: str) -> str:
    """Return the page: two tables with a row a kernel and a column an architecture."""
    spilling = sum(usage.spill_stores + usage.spill_loads > 0 for usage in usages)
    parts = [
        _INTRODUCTION.format(version=version, share=SHARE, amount=AMOUNT),
        _REGISTERS.format(count=len(usages), spilling=spilling),
        _table(usages, _registers),
        _INSTRUCTIONS,
        _table(usages, _instructions),
    ]
    return "\n".join(parts)


def _table(usages: Sequence[Usage], cell: Callable[[Usage], str]) -> str:
    arches = list(dict.fromkeys(usage.arch for usage in usages))
    by_kernel: dict[tuple[str, str], dict[str, Usage]] = {}
    for usage in usages:
        by_kernel.setdefault((usage.kernel, usage.lane), {})[usage.arch] = usage
    lines = [
        f"| kernel | lane | {' | '.join(arches)} |",
        f"| --- | --- |{' ---: |' * len(arches)}",
    ]
    for (kernel, lane), row in by_kernel.items():
        cells = " | ".join(cell(row[arch]) for arch in arches)
        lines.append(f"| `{kernel}` | {lane} | {cells} |")
    return "\n".join(lines) + "\n"


def _registers(usage: Usage) -> str:
    if usage.spill_stores + usage.spill_loads == 0:
        return str(usage.registers)
    return f"{usage.registers} +{usage.spill_stores}/{usage.spill_loads}"


def _instructions(usage: Usage) -> str:
    found = usage.instructions
    return "" if found is None else f"{found.loop} ({found.whole})"


def differences(page: str, usages: Sequence[Usage]) -> list[str]:
    """Compare the page with what is measured, of the architectures that are.

    Returns
    -------
    list of str
        A line for every cell that is missing, too far off, or of a kernel that is no more.
    """
    registers, instructions = (_read(part) for part in page.split("\n## ")[1:])
    counted = [usage for usage in usages if usage.instructions is not None]
    return [
        *_compare(registers, {_place(usage): _registers(usage) for usage in usages}),
        *_compare(instructions, {_place(each): _instructions(each) for each in counted}),
    ]


def _compare(written: Mapping[Place, str], measured: Mapping[Place, str]) -> Iterator[str]:
    arches = {arch for _, _, arch in measured}
    for place in dict.fromkeys([*measured, *(place for place in written if place[2] in arches)]):
        page, now = written.get(place, "nothing"), measured.get(place, "nothing")
        if not _is_near(page, now):
            yield f"{' '.join(filter(None, place))}: {page} on the page, {now} measured"


def _place(usage: Usage) -> Place:
    return usage.kernel, usage.lane, usage.arch


def _read(text: str) -> dict[Place, str]:
    """Return the cells of a table."""
    head, _, *rows = _rows(text)
    return {
        (kernel.strip("`"), lane, arch): cell
        for kernel, lane, *cells in rows
        for arch, cell in zip(head[2:], cells, strict=True)
    }


def _rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def _is_near(written: str, measured: str) -> bool:
    pages, now = _numbers(written), _numbers(measured)
    if len(pages) != len(now):
        return False
    pairs = zip(pages, now, strict=True)
    return all(abs(page - number) <= max(AMOUNT, SHARE * page) for page, number in pairs)


def _numbers(cell: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", cell)]
