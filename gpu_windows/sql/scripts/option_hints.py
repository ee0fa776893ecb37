"""Options of tables in hints: ``FROM t /*+ OPTIONS('path' = 'x') */``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from gpu_windows.sql.scripts.definitions import TableDefinition, read_options
from gpu_windows.sql.scripts.lexer import Cursor, Excerpt, Token, split_statements

_PLACE = "OPTIONS follow the name of a table: FROM t /*+ OPTIONS('key' = 'value') */"


def is_option_hint(token: Token) -> bool:
    """Whether a token is a hint with options of a table."""
    return token.kind == "hint" and re.search(r"\bOPTIONS\b", token.text, re.I) is not None


def read_option_hint(hint: Token) -> dict[str, str]:
    """Return the options of a hint.

    Raises
    ------
    SqlError
        With the position of what is not an option.
    """
    inner = Excerpt(hint.script, hint.start + 3, hint.end - 2)
    (cursor,) = split_statements(inner.in_place)
    cursor.expect("OPTIONS")
    options = read_options(cursor)
    if not cursor.is_at_end:
        raise cursor.error("a hint of a table has OPTIONS alone")
    return options


def read_target_hint(cursor: Cursor) -> dict[str, str]:
    """Read the hint that may follow the target of INSERT, and return its options.

    Raises
    ------
    SqlError
        If it is another hint.
    """
    if cursor.token.kind != "hint":
        return {}
    if not is_option_hint(cursor.token):
        raise cursor.error("a table takes the hint OPTIONS('key' = 'value')")
    return read_option_hint(cursor.next())


@dataclass
class TablesWithOptions:
    """Tables with options of hints, by names of their own."""

    _tables: dict[tuple[str, tuple[tuple[str, str], ...]], str] = field(default_factory=dict)

    def bind(self, tree: exp.Expr, query: Excerpt, names: Collection[str]) -> exp.Expr:
        """Return a query in which tables with a hint have the names of `find`.

        ``names``: of the tables of CREATE TABLE, in lower case.

        Raises
        ------
        SqlError
            If a hint does not follow a table, or one of its options is not a string.
        """
        for end, hint in _hints_of(query):
            options = read_option_hint(hint)
            nodes = [each for each in tree.find_all(exp.Table) if each.this.meta.get("end") == end]
            if not nodes:
                raise hint.error(_PLACE)
            for node in nodes:
                if node.this.name.lower() not in names:
                    rule = f"OPTIONS are of tables of CREATE TABLE; there are {', '.join(names)}"
                    raise hint.error(rule, node.this.name)
                self._rename(node, options)
        return tree

    def _rename(self, node: exp.Table, options: Mapping[str, str]) -> None:
        name = node.this.name
        key = name.lower(), tuple(sorted(options.items()))
        own = self._tables.setdefault(key, f"{name.lower()} with options {len(self._tables)}")
        if not node.alias:
            node.set("alias", exp.TableAlias(this=node.this.copy()))
        renamed = exp.to_identifier(own, quoted=True)
        renamed.meta.update(node.this.meta)
        node.set("this", renamed)

    def find(
        self, name: str, tables: Mapping[str, TableDefinition]
    ) -> tuple[str, TableDefinition] | None:
        """Return the table that has a name of `bind`, by its name, with its options; else None."""
        for (table, options), own in self._tables.items():
            if own == name and table in tables:
                return table, merge_options(tables[table], dict(options))
        return None


def merge_options(table: TableDefinition, options: Mapping[str, str]) -> TableDefinition:
    """Return a table with other options in place of, or beside its own."""
    return replace(table, options={**table.options, **options}) if options else table


def _hints_of(query: Excerpt) -> list[tuple[int, Token]]:
    """Return the hints with options of a query, and the last offset of the names before them."""
    found: list[tuple[int, Token]] = []
    for cursor in split_statements(query.in_place):
        end = -1
        while not cursor.is_at_end:
            token = cursor.next()
            if is_option_hint(token):
                found.append((end, token))
            end = token.end - 1
    return found
