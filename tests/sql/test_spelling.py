"""A statement means the same in any case, on one line or many, with comments, with a semicolon."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from sqlglot import exp

import gpu_windows as gw
from gpu_windows.errors import SqlError
from gpu_windows.expressions.sql_text import parse_tree
from tests.docs.pages import blocks, pages
from tests.lanes import quick
from tests.sql.pattern_texts import patterns
from tests.sql.spelling import SPELLINGS
from tests.sql.texts import KINDS, rows, stream

GOLDEN = Path(__file__).parents[1] / "golden"
FRAME = "SELECT v, SUM(v) OVER (PARTITION BY k ORDER BY ts {}) AS s FROM t"


def recorded() -> list[str]:
    """Return the statements that a Flink has run."""
    files = sorted(GOLDEN.glob("*sql_*/*.json"))
    texts = (json.loads(file.read_text()).get("sql") for file in files)
    return sorted({text for text in texts if text})


def documented() -> list[str]:
    """Return the statements of the documentation."""
    found = []
    for page in pages():
        for block in blocks(page):
            if block.language == "python" and "gw.sql(" in block.text:
                calls = (n for n in ast.walk(ast.parse(block.text)) if isinstance(n, ast.Call))
                found += [text for call in calls if (text := _statement(call))]
    return found


def _statement(call: ast.Call) -> str | None:
    is_sql = isinstance(call.func, ast.Attribute) and call.func.attr == "sql"
    text = call.args[0] if is_sql and call.args else None
    return text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else None


def made() -> list[str]:
    """Return statements of the grammar, some of each kind."""
    rng = random.Random(7)
    return [kind(rng).sql for kind in (*KINDS, patterns) for _ in range(5)]


def _tree(text: str) -> str | None:
    """Return what is read of a statement; None if it cannot be read."""
    try:
        tree = parse_tree(text)
    except SqlError:
        return None
    for each in tree.find_all(exp.Anonymous):  # whose names tell no cases apart
        each.set("this", each.name.upper())
    return repr(tree)


def table() -> gw.typing.TimedStream:
    times = pa.array([0, 60, 120, 180], pa.timestamp("s", "UTC"))
    return stream(pa.table({"k": ["a"] * 4, "v": [1, 2, 3, 4], "ts": times}))


@pytest.mark.parametrize("spelling", quick(SPELLINGS, "mixed case"))
@pytest.mark.parametrize("origin", [recorded, documented, made])
def test_a_statement_is_read_alike_however_it_is_written(
    origin: Callable[[], list[str]], spelling: str
) -> None:
    texts = [text for text in origin() if _tree(text) is not None]
    assert len(texts) > 5
    for text in texts:
        other = SPELLINGS[spelling](text)
        assert _tree(other) == _tree(text), other


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_statement_gives_the_same_however_it_is_written(spelling: str) -> None:
    rng = random.Random(3)
    tables = {name: stream(rows(rng, 20)) for name in "tu"}
    for kind in (*KINDS, patterns):
        text = kind(rng).sql
        query, other = gw.sql(text, **tables), gw.sql(SPELLINGS[spelling](text), **tables)
        assert other.explain() == query.explain()
        assert repr(other.result().to_pylist()) == repr(query.result().to_pylist()), text


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "frame",
    ["ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
     "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW", "ROWS UNBOUNDED PRECEDING"],
)  # fmt: skip
def test_frames_begin_and_end_alike_in_any_case(frame: str, spelling: str) -> None:
    text = FRAME.format(frame)
    found = gw.sql(SPELLINGS[spelling](text), t=table()).result()
    assert found.equals(gw.sql(text, t=table()).result())


def test_what_precedes_in_lower_case_is_no_following() -> None:
    text = FRAME.format("rows between 1 preceding and 1 following")
    assert gw.sql(text, t=table()).result()["s"].to_pylist() == [3, 6, 9, 7]


def test_a_comment_in_an_aggregate_is_no_other_aggregate() -> None:
    text = (
        "SELECT COUNT(*) /* all */ AS n, window_end FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL "
        "'1' HOUR) GROUP BY window_start, window_end HAVING COUNT( /* sqlglot.anonymous */ *) > 1"
    )
    query = gw.sql(text, t=table())
    assert query.explain().split("\n\n")[0].count("gw.count()") == 1
    assert query.result()["n"].to_pylist() == [4]
