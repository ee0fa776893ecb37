"""The words that names and docstrings of the product may not have, with the field's instead.

``python -m tests.words [PATHS]`` prints each place; `make lint` runs it over the product.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("gpu_windows", "kernels", "spark_glue")

#: Names of functions, classes, parameters and variables: as a whole, without underscores before.
NAMES = {
    "chosen": "project, projection, selected columns",
    "covered": "verb and noun",
    "declared": "declare_..., or the noun",
    "former": "previous, legacy",
    "held": "stored, cached",
    "in_force": "current watermark",
    "its": "left, right, own, other",
    "joined": "join_..., or the noun",
    "kept": "stored, retained, or the noun: state, rows",
    "known": "stored, cached, loaded, or the noun",
    "least": "min_...",
    "lent": "is_borrowed",
    "listed": "as_list",
    "meant": "resolve",
    "met": "matched",
    "mine": "own",
    "most": "max_...",
    "named": "bind_columns, with_names, or the noun",
    "noted": "verb and noun",
    "ours": "left, own",
    "outer": "say what: select_outer",
    "owed": "pending",
    "parted": "split, partition",
    "passed": "forwarded, or the noun: messages",
    "posted": "published",
    "reached": "previous watermark",
    "recalled": "loaded",
    "restored": "restore_..., or the noun",
    "room": "limit, capacity",
    "said": "call, message, text",
    "settled": "compacted, flushed",
    "shown": "display_name, emitted",
    "staged": "as_stage",
    "tagged": "tag_sides, or the noun",
    "taken": "cached, consumed",
    "theirs": "right, other",
    "together": "concat",
    "told": "metadata, report, message, payload",
    "valve": "combined watermark",
    "waiting": "pending, buffered",
}  # fmt: skip

#: Parts of names: between underscores, or a word of a class's name.
PARTS = {
    "kept": "stored, retained",
    "least": "min",
    "lent": "borrowed",
    "met": "matched",
    "most": "max",
    "owed": "pending",
    "said": "call, message, text",
    "told": "metadata, report",
}

#: A function is a verb with its noun, or a noun: no participle alone.
_PARTICIPLE = re.compile(r"^[a-z]{2,}ed$")
_IRREGULAR = {
    "begun", "broken", "built", "drawn", "found", "given", "gone", "made", "seen", "sent",
    "written",
}  # fmt: skip
_NO_PARTICIPLES = {
    "embed",
    "exceed",
    "feed",
    "need",
    "proceed",
    "rejected",
    "seed",
    "shed",
    "speed",
    "succeed",
}

#: First lines of docstrings.
PHRASES = {
    r"^Have ": "Make, Load, Keep, or the verb itself",
    r"^Tell ": "Return, Report",
    r"^What ": "the noun",
    r"^Those (that|of|who) ": "the noun",
    r"\b(is|are) over\b": "has expired, is closed",
    r"\bthat (is|are) none\b|\bif (it|there) is none\b": "otherwise",
    r"\b(is|are) no [`A-Z]": "is not a ...",
    r"\bany more\b": "no longer, no further",
    r"\bgoes? on\b": "resume, continue",
    r"\bbesides\b": "in addition to, other than",
    r"\bat hand\b": "current",
    r"\banew\b": "again, from scratch",
    r"\bso many\b|\bas many\b": "name the count",
    r"\bin words\b": "human-readable description",
    r"\blet go of\b|\blets go of\b": "release, close",
    r"\bis said\b|\bare said\b|\bis told\b|\bare told\b": "message, report; or say who does it",
    r"\b(rows|what) (that )?waits?\b": "buffered rows, pending",
    r"\bworth (it|the)\b": "pays off: give the threshold",
    r"\bowed\b": "pending",
}
_PHRASES = {re.compile(pattern): instead for pattern, instead in PHRASES.items()}
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")


@dataclass(frozen=True, order=True)
class Place:
    """A word that is on the list."""

    path: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word}: say {self.instead}"


#: Where a word of the list is the right one.
ALLOWED = {("progress.py", "held"): "a watermark is held back by an input; also a key of JSON"}


def places_in(path: Path) -> Iterator[Place]:
    """Yield the words of a file that are on the list."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        for name, is_function in _names(node):
            instead = _instead(name, is_function=is_function)
            if instead is not None and (path.name, name) not in ALLOWED:
                yield Place(path, getattr(node, "lineno", 1), name, instead)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
            for pattern, instead in _PHRASES.items():
                found = pattern.search(first)
                if found is not None:
                    line = getattr(node, "lineno", 1)
                    yield Place(path, line, f"{found.group()!r} in {first[:60]!r}", instead)


def _names(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the names that a node defines, and whether each is a function's."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, True
    elif isinstance(node, ast.ClassDef):
        yield node.name, False
    elif isinstance(node, ast.arg):
        yield node.arg, False
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, False
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr, False


def _instead(name: str, *, is_function: bool) -> str | None:
    """Return what to say instead of a name, or None if it may stay."""
    bare = name.strip("_")
    if bare.lower() in NAMES:
        return NAMES[bare.lower()]
    for part in bare.replace("at_least", "").split("_"):
        for hump in _HUMP.findall(part):
            if hump.lower() in PARTS:
                return PARTS[hump.lower()]
    is_participle = bare in _IRREGULAR or _PARTICIPLE.match(bare)
    if is_function and is_participle and bare not in _NO_PARTICIPLES:
        return "a verb and its noun, or a noun: no participle alone"
    return None


def files_of(paths: Iterable[str]) -> Iterator[Path]:
    """Yield the modules at paths below the root of the checkout."""
    for each in paths:
        path = Path(each)
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def main(paths: list[str]) -> int:
    """Print the places; return 1 if there are any."""
    found = [place for path in files_of(paths or PRODUCT) for place in sorted(places_in(path))]
    for place in found:
        print(place)  # noqa: T201 - a command's output
    if found:
        print(f"{len(found)} words of the list in tests/words.py")  # noqa: T201
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
