"""PTX that is wrong on purpose: one atomic, relaxed read or barrier of a kernel is none."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ATOMIC = re.compile(
    r"^\s*atom\.(global|shared)\.(add|min|max)\.(\w)64\s+"
    r"(%rd\d+), (\[[^\]]+\]), (%rd\d+|-?\d+);$",
    re.MULTILINE,
)
#: Kernels call it where they have just read what it compares with.
_CAS = re.compile(
    r"^\s*atom\.shared\.cas\.b32\s+(%r\d+), (\[[^\]]+\]), %r\d+, (%r\d+);$", re.MULTILINE
)
_RELAXED = re.compile(
    r"^\s*ld\.relaxed\.(?:gpu|cta)\.(global|shared)\.b(64|32) (%rd?\d+), (\[[^\]]+\]);$",
    re.MULTILINE,
)
_BARRIER = re.compile(r"^\s*bar\.sync\s+0;$", re.MULTILINE)


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Yield what is changed, and the PTX with it.

    An atomic becomes a read, an operation and a write; one that compares a read and a write; a
    relaxed read a plain one; a barrier nothing.
    """
    patterns = {"atomic": _ATOMIC, "cas": _CAS, "read": _RELAXED, "barrier": _BARRIER}
    for kind, pattern in patterns.items():
        for number, found in enumerate(pattern.finditer(text)):
            new = _instead(kind, found)
            yield f"{kind} {number}", text[: found.start()] + new + text[found.end() :]


def _instead(kind: str, found: re.Match[str]) -> str:
    if kind == "barrier":
        return ""
    if kind == "read":
        space, width, old, place = found.groups()
        return f"ld.{space}.u{width} {old}, {place};"
    if kind == "cas":
        old, place, value = found.groups()
        return f"ld.shared.u32 {old}, {place};\nst.shared.u32 {place}, {value};"
    space, operation, sign, old, place, value = found.groups()
    typed = f"{operation}.{'s' if operation == 'add' else sign}64"
    lines = (
        f"ld.{space}.u64 {old}, {place};",
        f"{typed} {old}, {old}, {value};",
        f"st.{space}.u64 {place}, {old};",
    )
    return "\n".join(lines)
