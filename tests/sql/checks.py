"""What must hold of random statements."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.errors import ExpressionError, QueryError, SkipError, SqlError
from tests.sql.pattern_texts import patterns
from tests.sql.texts import KINDS, broken, rows, stream


def failure_of(seed: int) -> str | None:
    """Return what is wrong with the statements of a seed: a whole one, and a broken one."""
    rng = random.Random(seed)
    tables = {name: stream(rows(rng, rng.randrange(0, 25))) for name in "tu"}
    text = rng.choice([*KINDS, patterns])(rng)
    ours, wanted = gw.sql(text.sql, **tables).result(), text.of(tables)
    if ours.column_names != wanted.column_names or _counted(ours) != _counted(wanted):
        return f"another result than the API's: {text.sql}"
    odd = broken(rng, text.sql)
    try:
        gw.sql(odd, **tables).result()
    except SqlError as error:
        if error.line is None and "cannot be parsed" not in error.rule:
            return f"no place in {error}: {odd}"
    except (ExpressionError, SkipError):  # of a row, or of a match
        return None
    except QueryError as error:
        return f"{type(error).__name__} without a place, {error}: {odd}"
    except Exception as error:  # noqa: BLE001 - any other is a failure
        return f"{type(error).__name__}, {error}: {odd}"
    return None


def _counted(table: pa.Table) -> Counter[str]:
    """Return the rows, however they are ordered; NaN is itself."""

    def shown(value: Any) -> Any:
        return round(value, 9) if isinstance(value, float) else value

    return Counter(repr([shown(v) for v in row.values()]) for row in table.to_pylist())
