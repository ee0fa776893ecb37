"""The pictures of firings: of the queries that stand in the pages.

``python -m tests.docs.pictures`` draws them anew; ``--check`` compares instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.plot import as_svg
from tests.docs import setups
from tests.docs.pages import DOCS, ROOT
from tests.docs.running import run

#: Of the pages whose examples make a ``figure``: where it is kept.
PICTURES = {
    "docs/concepts/event_time.md": DOCS / "pictures" / "event_time.svg",
    "docs/concepts/sessions.md": DOCS / "pictures" / "sessions.svg",
    "docs/concepts/sliding.md": DOCS / "pictures" / "sliding.svg",
    "docs/concepts/triggers.md": DOCS / "pictures" / "triggers.svg",
    "docs/windows.md": DOCS / "firings.svg",
}


def drawn(page: str) -> str:
    """Return the picture of a page."""
    names = setups.PLAIN[page]()
    run(ROOT / page, names)
    return as_svg(names["figure"])


def main(arguments: list[str]) -> int:
    """Draw or compare all pictures; return the exit status."""
    others = []
    for page, path in PICTURES.items():
        text = drawn(page)
        if "--check" not in arguments:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif path.read_text() != text:
            others.append(_name(path))
    if others:
        sys.stderr.write(f"not what the pages make now: {', '.join(others)}\n")
    return int(bool(others))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
