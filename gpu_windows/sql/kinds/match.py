"""MATCH_RECOGNIZE: patterns in the rows of a table."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.intervals import interval_ticks
from gpu_windows.expressions.sql_text import errors_at, sql_error, to_spark_sql
from gpu_windows.functions.patterns.pattern import Pattern
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.syntax.statement import Statement
from gpu_windows.sql.syntax.value_types import apply_type_rules
from gpu_windows.sql.syntax.window_functions import duration_call
from gpu_windows.sql.tables.columns import Columns
from gpu_windows.sql.tables.inputs import Input, check_timed, map_columns, result_column
from gpu_windows.sql.tables.processing_time import in_time_of
from gpu_windows.sql.tables.results import Results, select_from_results
from gpu_windows.sql.translator import Translator

_ONE_ROW = "ONE ROW PER MATCH"
_AFTER_MATCH = "AFTER MATCH "


def read_match(statement: Statement, translator: Translator) -> Results:
    """Return the results of a query over the matches of a pattern.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    statement.refuse("MATCH_RECOGNIZE cannot be joined: join in an query query", "joins")
    match = statement.select.args["match"]
    order = match.args.get("order")
    first = [] if order is None else [order.expressions[0].this]
    table = in_time_of(translator.table(statement.source), first)
    results = _Match(match, table, translator).results()
    alias = match.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise sql_error(alias, "name the columns of matches with MEASURES ... AS", alias.name)
    name = alias.name if alias is not None else statement.source.alias_or_name
    query = statement.select.copy()
    query.set("match", None)
    query.args["from_"].set("this", exp.Table(this=exp.to_identifier(name, quoted=True)))
    return select_from_results(Statement(query), results, Statement(query).where)


class _Match:
    """Reads the clauses of MATCH_RECOGNIZE."""

    def __init__(self, match: exp.MatchRecognize, table: Input, translator: Translator) -> None:
        self._match, self._table = match, table
        self._settings = translator.settings.for_inputs(table)
        self._columns = Columns(table)

    def results(self) -> Results:
        """Return all matches."""
        match, table = self._match, self._table
        if table.window is not None:
            raise sql_error(match, "MATCH_RECOGNIZE takes a table, not a window function")
        check_timed(table, match)
        self._check_rows()
        then, descending = self._order()
        partition = self._partition()
        keys = [table.column(each) for each in partition]
        measures = self._measures()
        if match.args.get("pattern") is None:
            raise sql_error(match, "MATCH_RECOGNIZE needs a PATTERN")
        with errors_at(match):
            stream = self._columns.stream
            keyed = stream.call("key_by", *keys) if keys else stream
            method = "match_recognize" if keys else "match_recognize_all"
            step = keyed.call(method, *self._pattern(), **self._options())
            if then:
                step = step.call("then_by", *then, descending=descending)
            outputs = self._settings.apply(step).call("with_outputs").call("measures", **measures)
        results = Results(outputs, (*map(table.display_name, keys), *measures))
        key_results = {each.name: table.column_result(each) for each in partition}
        return results.select({**key_results, **{name: result_column(name) for name in measures}})

    def _partition(self) -> list[exp.Column]:
        by = self._match.args.get("partition_by") or []
        wrong = [each for each in by if not isinstance(each, exp.Column)]
        if wrong:
            raise sql_error(wrong[0], "PARTITION BY takes columns: add one in a subquery")
        return [*by]

    def _check_rows(self) -> None:
        rows = self._match.args.get("rows")
        if rows is not None and rows.name != _ONE_ROW:
            raise sql_error(self._match, f"a match must be one row: {_ONE_ROW}", rows.name)

    def _order(self) -> tuple[list[str], list[bool]]:
        """Return the columns that order rows of equal time, and whether each is descending."""
        order = self._match.args.get("order")
        by: list[exp.Ordered] = [] if order is None else order.expressions
        others = by[1:]
        is_time = bool(
            by
            and isinstance(by[0].this, exp.Column)
            and not by[0].args.get("desc")
            and self._table.column(by[0].this) == self._table.time
        )
        if not is_time:
            rule = f"ORDER BY must start with the event time, ascending: {self._table.time}"
            raise sql_error(order or self._match, rule)
        for each in others:
            descends = bool(each.args.get("desc"))
            if each.args.get("nulls_first", not descends) == descends:
                raise sql_error(each, "nulls sort below values: leave out NULLS FIRST and LAST")
        names = [self._columns.name(each.this) for each in others]
        return names, [bool(each.args.get("desc")) for each in others]

    def _measures(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in self._match.args.get("measures") or ():
            node = each.this
            if each.args.get("window_frame") == "RUNNING":
                raise sql_error(node, "MEASURES are FINAL: RUNNING is not covered")
            if not isinstance(node, exp.Alias):
                raise sql_error(node, "a measure needs a name: add AS")
            if node.alias.lower() in map(str.lower, found):
                raise sql_error(node, "two measures have the same name", node.alias)
            found[node.alias] = self._text(node.this)
        if not found:
            raise sql_error(self._match, "MATCH_RECOGNIZE needs MEASURES")
        return found

    def _pattern(self) -> tuple[str, dict[str, str]]:
        pattern = " ".join(self._match.args["pattern"].name.split())
        with errors_at(self._match):
            read = Pattern.of(pattern)
        define: dict[str, str] = {}
        for each in self._match.args.get("define") or ():
            if each.alias in define:
                raise sql_error(each, "DEFINE defines a variable twice", each.alias)
            if read.index_of(each.alias) is not None:  # others do not affect the pattern
                define[each.alias] = self._text(each.this)
        return pattern, define

    def _options(self) -> dict[str, ApiCall | str]:
        options: dict[str, ApiCall | str] = {}
        within, after = self._match.args.get("within"), self._match.args.get("after")
        if within is not None and (length := interval_ticks(within)):
            options["within"] = duration_call(length)  # 0 means no limit
        if after is not None:
            words = after.name.removeprefix(_AFTER_MATCH).split()
            # TO alone means TO LAST
            if words[2] in ("FIRST", "LAST", "TO") and words[1] == "TO":
                which = "last" if words[2] == "TO" else words[2].lower()
                options["after"] = f"skip to {which} {words[3]}"
            else:
                options["after"] = " ".join(words).lower()
        return options

    def _text(self, node: exp.Expr) -> str:
        """Return an expression over a match, with column names of the stream."""

        def rename(each: exp.Column) -> exp.Expr:
            if len(each.parts) > 2:
                raise sql_error(each, "a column of a match takes one qualifier, its variable")
            if isinstance(each.this, exp.Star):
                return each
            name = exp.to_identifier(self._table.column(exp.column(each.this.copy())), quoted=True)
            table = each.args.get("table")
            return exp.Column(this=name, table=None if table is None else table.copy())

        with errors_at(node):
            return to_spark_sql(apply_type_rules(map_columns(node, rename), self._table.type_of))
