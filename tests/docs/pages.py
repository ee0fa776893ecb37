"""The pages of the documentation, as they lie in the repository: links, anchors, blocks of code."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Pages that are not in docs/.
OUTSIDE = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "benchmarks/README.md",
)

_FENCED = re.compile(
    r"^(?P<indent> *)(?P<fence>```|~~~)(?P<language>\w*)[^\n]*\n"
    r"(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
_INLINE_CODE = re.compile(r"`[^`]+`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
_LINKED_TEXT = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Block:
    """Fenced code of a page.

    Parameters
    ----------
    language : str
        What stands behind the fence; empty if nothing does.
    text : str
        Without the indentation of the fence.
    line : int
        The number of its first line in the page.
    before, after : str
        The text between it and its neighbours.
    """

    language: str
    text: str
    line: int
    before: str
    after: str


def pages() -> list[Path]:
    """Return all pages."""
    return [*(ROOT / name for name in OUTSIDE), *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """Return the path of a page in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Return the fenced code of a page, in order."""
    text = page.read_text()
    found = list(_FENCED.finditer(text))
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(text)]
    return [
        Block(
            language=match["language"],
            text=re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE),
            line=text.count("\n", 0, match.start()) + 2,
            before=text[ends[place] : starts[place]],
            after=text[ends[place + 1] : starts[place + 1]],
        )
        for place, match in enumerate(found)
    ]


def links(page: Path) -> list[str]:
    """Return what a page links to, but for other sites."""
    plain = _INLINE_CODE.sub("", _FENCED.sub("", page.read_text()))
    return [target for target in _LINK.findall(plain) if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """Return the names that GitHub gives to the headings of a page."""
    seen: Counter[str] = Counter()
    names = set()
    for heading in _HEADING.findall(_FENCED.sub("", page.read_text())):
        text = _LINKED_TEXT.sub(r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names
