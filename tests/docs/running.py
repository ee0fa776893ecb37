"""Run the Python of a page from top to bottom, in one namespace, and compare what it prints.

In the page, HTML comments just above a block, which no reader sees, say what is special:

``<!-- not run: it needs Delta Lake -->``
    The block is compiled only.
``<!-- before: query.processAllAvailable() -->``
    Python that runs before the block.

A block of ``text`` that follows a block of Python is what that prints.
"""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.docs.pages import Block, blocks, name_of

_COMMENT = re.compile(r"<!-- (not run|before):\s(.*?)\s-->\s*", re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A block of Python.

    Parameters
    ----------
    block : Block
    not_run : str, optional
        Why it is compiled only.
    before : str
        What runs before it.
    prints : str, optional
        What it must print; None where the page does not say.
    """

    block: Block
    not_run: str | None
    before: str
    prints: str | None


def examples(page: Path) -> list[Example]:
    """Return the Python of a page.

    Raises
    ------
    ValueError
        If a comment for an example has no block of Python behind it.
    """
    found, every = [], blocks(page)
    for place, block in enumerate(every):
        said, rest = _said(block.before), every[place + 1 : place + 2]
        if block.language != "python":
            if said:
                raise ValueError(f"{name_of(page)}:{block.line}: {said} without Python")
            continue
        prints = rest[0].text if rest and rest[0].language == "text" else None
        adjacent = not block.after.strip()
        found.append(
            Example(
                block, said.get("not run"), said.get("before", ""), prints if adjacent else None
            )
        )
    return found


def _said(before: str) -> dict[str, str]:
    """Return the comments that end the text before a block."""
    said: dict[str, str] = {}
    comments = list(_COMMENT.finditer(before))
    end = len(before)
    for comment in reversed(comments):
        if comment.end() != end:
            break
        said[comment[1]] = comment[2]
        end = comment.start()
    return said


def run(page: Path, names: dict[str, Any]) -> list[str]:
    """Run the examples of a page.

    Parameters
    ----------
    page : Path
    names : dict
        What the page takes as known. Changed by what it defines.

    Returns
    -------
    list of str
        The reasons of what was not run.

    Raises
    ------
    AssertionError
        If an example prints something else than what stands below it.
    """
    names["__name__"] = "__main__"  # as of a program: classes go to Spark's workers by value
    skipped = []
    for example in examples(page):
        block = example.block
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
        if example.not_run is not None:
            skipped.append(example.not_run)
            continue
        exec(example.before, names)  # noqa: S102 -- the pages are ours
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)  # noqa: S102
        if example.prints is not None:
            where = f"{name_of(page)}:{block.line}"
            assert _lines(printed.getvalue()) == _lines(example.prints), where
    return skipped


def _lines(text: str) -> list[str]:
    """Return lines without what editors cut off: blanks at their ends, empty lines at both ends."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]
