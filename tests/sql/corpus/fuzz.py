"""Texts of the corpus, changed by chance: each has a result, or a typed error."""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import gpu_windows as gw
from gpu_windows.errors import GpuWindowsError, SqlError
from tests.sql.corpus.outcomes import script_streams, statement_streams
from tests.sql.corpus.texts import Text, scripts, statements

_TOKEN = re.compile(r"\s+|--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|`[^`]*`|\w+|[<>!]=|<>|=>|\|\||.", re.S)
_ODD = (
    *("NULL", "0", "-1", "1e400", "99999999999999999999", "''", "'x'", "*", "(", ")", ",", ";"),
    *("DISTINCT", "OVER", "NOT", "AND", "AS", "FROM", "GROUP BY", "ORDER BY", "UNION ALL"),
    *("INTERVAL '1' MONTH", "INTERVAL '-5' SECOND", "INTERVAL '0' SECOND", "CAST(1 AS FOO)"),
    *("window_start", "COUNT(*)", "ROW_NUMBER()", "CASE WHEN 1 = 1 THEN 2 END", "ARRAY[1, 'a']"),
    *(
        "`",
        "'",
        "\x00",
        "é",
        "U&'\\00e9'",
        "X'0F'",
        "DATE '2026-13-01'",
        "TIMESTAMP 'x'",
        ":p",
        "?",
    ),
)
#: Rules about a whole text, which have no place in it.
_ABOUT_ALL = re.compile("parse|not empty|one statement|one SELECT|needs FROM|needs a list")
Tokens = list[str]


def change_text(rng: random.Random, texts: Sequence[Text]) -> tuple[Text, str]:
    """Return a text of the corpus, and what has become of it by one change to four."""
    text = rng.choice(texts)
    tokens: Tokens = _TOKEN.findall(text.sql)
    for _ in range(rng.choice([1, 1, 1, 2, 2, 4])):
        if tokens:
            rng.choice(_CHANGES)(rng, tokens)
    return text, "".join(tokens)


def _place(rng: random.Random, tokens: Tokens) -> int:
    return rng.randrange(len(tokens))


def _drop(rng: random.Random, tokens: Tokens) -> None:
    del tokens[_place(rng, tokens)]


def _drop_some(rng: random.Random, tokens: Tokens) -> None:
    place = _place(rng, tokens)
    del tokens[place : place + rng.randrange(2, 12)]


def _double(rng: random.Random, tokens: Tokens) -> None:
    place, length = _place(rng, tokens), rng.choice([1, 1, 2, 5, 9])
    tokens[place:place] = [" ", *tokens[place : place + length], " "]


def _swap(rng: random.Random, tokens: Tokens) -> None:
    one, other = _place(rng, tokens), _place(rng, tokens)
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _cut(rng: random.Random, tokens: Tokens) -> None:
    del tokens[_place(rng, tokens) :]


def _put_odd(rng: random.Random, tokens: Tokens) -> None:
    tokens[_place(rng, tokens)] = f" {rng.choice(_ODD)} "


def _copy_name(rng: random.Random, tokens: Tokens) -> None:
    names = [place for place, token in enumerate(tokens) if re.match(r"\w", token)]
    if names:
        tokens[rng.choice(names)] = tokens[rng.choice(names)]


def _nest(rng: random.Random, tokens: Tokens) -> None:
    inner = "".join(tokens).rstrip().rstrip(";")
    tokens[:] = rng.choice(
        [
            ["SELECT * FROM (", inner, ") AS nested WHERE 1 = 1"],
            ["WITH nested AS (", inner, ") SELECT * FROM nested"],
            ["SELECT COUNT(*) FROM (", inner, ")"],
            ["(", inner, ")"],
            [inner, " UNION ALL ", inner],
            ["SELECT (", inner, ") AS one"],
        ]
    )


_CHANGES: tuple[Callable[[random.Random, Tokens], None], ...] = (
    *(_drop, _drop_some, _double, _swap, _cut, _put_odd, _put_odd, _copy_name, _copy_name, _nest),
)


@cache
def _streams(text: Text) -> dict[str, Any]:
    return script_streams(text) if text.kind == "scripts" else statement_streams(text)


def failure_of(seed: int, texts: Sequence[Text] | None = None) -> str | None:
    """Return what is not typed about the answer to the text of a seed; None if nothing is."""
    rng = random.Random(seed)
    text, sql = change_text(rng, texts or _texts())
    try:
        if text.kind == "scripts":
            gw.sql_script(sql, **_streams(text)).results()
        else:
            gw.sql(sql, **_streams(text)).result()
    except SqlError as error:
        if error.line is None and not _ABOUT_ALL.search(error.rule):
            return f"no place in {error}: {sql}"
    except GpuWindowsError:
        return None
    except Exception as error:  # noqa: BLE001 - any other is a failure
        if "Unexpected keyword" in str(error):  # of sqlglot where `unittest` is imported
            return None
        frames = traceback.extract_tb(error.__traceback__)
        own = next(f for f in reversed(frames) if "gpu_windows" in f.filename)
        place = f"{own.filename.rsplit('gpu_windows/', 1)[-1]}:{own.lineno}"
        return f"{type(error).__name__} at {place}: {str(error)[:200]}: {sql}"
    return None


@cache
def _texts() -> tuple[Text, ...]:
    return (*statements(), *scripts())
