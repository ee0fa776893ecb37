"""Statements of ``MATCH_RECOGNIZE`` over the table T, and random ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.parts import Part

VARIABLE = re.compile(r"([A-Z]\w*)([*+?]|\{\d*(?:,\d*)?\})?(\?)?")
SKIPS = {
    "past_last_row": "PAST LAST ROW",
    "to_next_row": "TO NEXT ROW",
    "to_first": "TO FIRST {}",
    "to_last": "TO LAST {}",
    "to": "TO {}",
}
#: Columns of T that cannot be null, where it is said to.
NOT_NULL = "COALESCE(idx, 0) AS i, COALESCE(`key`, '') AS k, COALESCE(`value`, 0) AS v"
#: Numbers and keys of T that the statement makes null, where it is said to.
NULL_VALUE, NULL_KEY = -1, "n"


def elements_of(pattern: str) -> list[Part]:
    """Return a pattern's variables with their quantifiers: those of ``max`` None have no bound.

    Nothing of a pattern that is more than that, such as one with groups, which Flink refuses.
    """
    found = [VARIABLE.fullmatch(word) for word in pattern.split()]
    return [_element(*each.groups()) for each in found if each] if all(found) else []


def _element(variable: str, quantifier: str | None, reluctant: str | None) -> Part:
    least, most = _bounds(quantifier or "{1}")
    return {"variable": variable, "min": least, "max": most, "greedy": reluctant is None}


def _bounds(quantifier: str) -> tuple[int, int | None]:
    known = {"?": (0, 1), "*": (0, None), "+": (1, None)}
    if quantifier in known:
        return known[quantifier]
    least, comma, most = quantifier.strip("{}").partition(",")
    return int(least or 0), int(most) if most else None if comma else int(least)


def quoted(text: str) -> str:
    """Return an expression with the columns quoted that are words of SQL."""
    return re.sub(r"\b(value|key)\b", r"`\1`", text)


def operator_of(
    pattern: str,
    define: Mapping[str, str],
    measures: Mapping[str, str] | None = None,
    *,
    skip: str | None = None,
    within_ms: int | None = None,
    partition_by: Sequence[str] = ("key",),
    order_by: Sequence[str] = ("rt",),
    nulls: bool = False,
    not_null: bool = False,
) -> Part:
    """Return the operator of a statement.

    Parameters
    ----------
    pattern : str
        Variables with their quantifiers, ``A B*? C{1,3}``.
    define : mapping
        Conditions by variable; ``value`` and ``key`` need no quotes here.
    measures : mapping, optional
        Expressions by name; default: the first and the last row of each variable.
    skip : str, optional
        A word of `SKIPS`, and its variable behind a blank; none: no such clause.
    within_ms : int, optional
    partition_by, order_by : sequence of str
    nulls : bool
        Whether the table has null keys and values (`NULL_KEY`, `NULL_VALUE`).
    not_null : bool
        Whether the columns `NOT_NULL` are the table's, none of which can be null.
    """
    elements = elements_of(pattern)
    operator: Part = {
        "kind": "sql_match",
        "partition_by": list(partition_by),
        "order_by": [quoted(each) for each in order_by],
        "measures": _quoted(rows_of(elements) if measures is None else measures),
        "pattern": elements,
        "define": _quoted(define),
    }
    if skip is not None:
        kind, _, variable = skip.partition(" ")
        operator["after_match"] = {"skip": kind, **({"variable": variable} if variable else {})}
    if within_ms is not None:
        operator["within_ms"] = within_ms
    if nulls:
        operator |= {"null_value": NULL_VALUE, "null_key": NULL_KEY}
    return operator | ({"not_null": True} if not_null else {})


def rows_of(elements: Sequence[Part]) -> dict[str, str]:
    """Return measures that tell which rows were matched to which variable."""
    measures = {}
    for element in elements:
        name = element["variable"]
        if element["max"] == 1:
            measures[name.lower()] = f"{name}.idx"
        else:
            measures[f"{name.lower()}_first"] = f"FIRST({name}.idx)"
            measures[f"{name.lower()}_last"] = f"LAST({name}.idx)"
    return measures


def _quoted(expressions: Mapping[str, str]) -> dict[str, str]:
    return {name: quoted(each) for name, each in expressions.items()}


def statement(operator: Part, pattern: str) -> str:
    """Return the text of a statement whose pattern is written as given."""
    clauses = [
        *(
            [f"PARTITION BY {', '.join(map(quoted, by))}"]
            if (by := operator["partition_by"])
            else []
        ),
        f"ORDER BY {', '.join(operator['order_by'])}",
        f"MEASURES {', '.join(f'{each} AS {name}' for name, each in operator['measures'].items())}",
        "ONE ROW PER MATCH",
        *_after_match(operator),
        f"PATTERN ({pattern}){_within(operator)}",
        f"DEFINE {', '.join(f'{name} AS {each}' for name, each in operator['define'].items())}",
    ]
    return f"SELECT * FROM {_table(operator)} MATCH_RECOGNIZE ({' '.join(clauses)})"


def _after_match(operator: Part) -> list[str]:
    if (after := operator.get("after_match")) is None:
        return []
    return [f"AFTER MATCH SKIP {SKIPS[after['skip']].format(after.get('variable'))}"]


def _within(operator: Part) -> str:
    if (ms := operator.get("within_ms")) is None:
        return ""
    seconds, rest = divmod(ms, 1000)
    return f" WITHIN INTERVAL '{seconds}.{rest:03d}' SECOND(3, 3)"


def _table(operator: Part) -> str:
    if "not_null" in operator:
        return f"(SELECT `key`, {NOT_NULL}, rt FROM T)"
    if "null_value" not in operator:
        return "T"
    return (
        f"(SELECT NULLIF(`key`, '{operator['null_key']}') AS `key`, ts, "
        f"NULLIF(`value`, {operator['null_value']}) AS `value`, idx, rt FROM T)"
    )


def scenario_of(pattern: str, define: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Return the fields of a scenario that say what is asked; parameters: `operator_of`."""
    operator = operator_of(pattern, define, **more)
    return {"operator": operator, "sql": statement(operator, pattern)}
