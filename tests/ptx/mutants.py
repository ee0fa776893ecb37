"""PTX that is wrong on purpose: one atomic, relaxed read or barrier of a kernel is none."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ATOMIC = re.compile(
    r"^\s*atom\.global\.(add|min|max)\.(\w)64\s+(%rd\d+), (\[[^\]]+\]), (%rd\d+|-?\d+);$",
    re.MULTILINE,
)
_RELAXED = re.compile(r"^\s*ld\.relaxed\.gpu\.global\.b64 (%rd\d+), (\[[^\]]+\]);$", re.MULTILINE)
_BARRIER = re.compile(r"^\s*bar\.sync\s+0;$", re.MULTILINE)


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Yield what is changed, and the PTX with it.

    An atomic becomes a read, an operation and a write; a relaxed read a plain one; a barrier
    nothing.
    """
    for kind, pattern in (("atomic", _ATOMIC), ("read", _RELAXED), ("barrier", _BARRIER)):
        for number, found in enumerate(pattern.finditer(text)):
            new = _instead(kind, found)
            yield f"{kind} {number}", text[: found.start()] + new + text[found.end() :]


def _instead(kind: str, found: re.Match[str]) -> str:
    if kind == "barrier":
        return ""
    if kind == "read":
        return f"ld.global.u64 {found[1]}, {found[2]};"
    operation, sign, old, place, value = found.groups()
    typed = f"{operation}.{'s' if operation == 'add' else sign}64"
    lines = (
        f"ld.global.u64 {old}, {place};",
        f"{typed} {old}, {old}, {value};",
        f"st.global.u64 {place}, {old};",
    )
    return "\n".join(lines)
