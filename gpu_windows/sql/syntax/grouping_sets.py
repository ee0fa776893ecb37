"""The sets of GROUPING SETS, ROLLUP and CUBE."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.planning.kinds.grouping import MAX_CUBE_KEYS


def expand_sets(node: exp.Expr) -> list[tuple[exp.Expr, ...]]:
    """Expand GROUPING SETS, ROLLUP or CUBE to its sets.

    Raises
    ------
    SqlError
        If a CUBE is of more than `MAX_CUBE_KEYS` parts, each of which doubles the sets.
    """
    parts = [_parts(each) for each in node.expressions]
    if isinstance(node, exp.GroupingSets):
        return parts
    if isinstance(node, exp.Rollup):
        return [
            tuple(one for part in parts[:count] for one in part)
            for count in range(len(parts), -1, -1)
        ]
    if len(parts) > MAX_CUBE_KEYS:
        raise sql_error(node, f"CUBE is of at most {MAX_CUBE_KEYS} columns", len(parts))
    subsets = range(2 ** len(parts) - 1, -1, -1)
    indices = range(len(parts))
    return [
        tuple(one for i in indices if bits >> (len(parts) - 1 - i) & 1 for one in parts[i])
        for bits in subsets
    ]


def _parts(node: exp.Expr) -> tuple[exp.Expr, ...]:
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    if isinstance(node, exp.Paren):
        return (node.this,)
    return (node,)
