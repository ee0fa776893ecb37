"""Window aggregation: GROUP BY window_start, window_end, or GROUP BY TUMBLE(...)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from gpu_windows.expressions.sql_text import canonical_text, errors_at, sql_error
from gpu_windows.planning.kinds.grouping import GROUPING_ID
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.kinds.aggregates import (
    build_aggregate,
    build_list_aggregate,
    is_list_aggregate,
)
from gpu_windows.sql.kinds.grouping_clause import GroupingClause, time_columns
from gpu_windows.sql.syntax.statement import (
    Statement,
    conjunction,
    conjuncts,
    is_aggregate,
    names_of,
)
from gpu_windows.sql.syntax.window_functions import AUXILIARY_FUNCTIONS
from gpu_windows.sql.tables.inputs import (
    Columns,
    Input,
    check_timed,
    result_column,
    window_bound,
)
from gpu_windows.sql.tables.processing_time import in_time_of
from gpu_windows.sql.tables.results import (
    Results,
    Settings,
    items_by_name,
    rewrite_over_results,
)
from gpu_windows.sql.translator import Translator

_BOUNDS = ("window_start", "window_end")
_NO_ORDER = "ORDER BY is not covered here: results are emitted as windows end"
_NOT_GROUPED = "this is neither an aggregate nor in GROUP BY"


@dataclass(frozen=True)
class Ranking:
    """The top-N of the results of a window: see `WindowedStream.top_keys`.

    Parameters
    ----------
    count : int
    by : tuple of sqlglot.exp.Expr
        Results by their names in the outer query.
    descending : bool or list of bool
    partition_by : tuple of sqlglot.exp.Expr
        window_start, window_end and maybe other results.
    number : str
        Name of the result with the number.
    node : sqlglot.exp.Expr
        The call of ROW_NUMBER, for the position of errors.
    """

    count: int
    by: tuple[exp.Expr, ...]
    descending: bool | list[bool]
    partition_by: tuple[exp.Expr, ...]
    number: str
    node: exp.Expr


def is_grouped(statement: Statement, translator: Translator) -> bool:
    """Whether a query has GROUP BY, or aggregates without OVER."""
    del translator
    return statement.group is not None or (statement.has_aggregates and not statement.over)


def read_group_by(statement: Statement, translator: Translator) -> Results:
    """Return aggregates per window.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    table = translator.table(statement.source)
    return WindowAggregation(statement, table, translator.settings).results()


class WindowAggregation:
    """Reads a window aggregation.

    Parameters
    ----------
    statement : Statement
    table : Input
    settings : Settings
    ranking : Ranking, optional
        Of an outer query that numbers the results.
    """

    def __init__(
        self, statement: Statement, table: Input, settings: Settings, ranking: Ranking | None = None
    ) -> None:
        self._statement, self._ranking = statement, ranking
        self._settings = settings.for_inputs(table)
        table = in_time_of(table, time_columns(statement.group)).where(statement.where)
        self._columns = Columns(table)
        clause = GroupingClause(statement, table, self._columns)
        self._grouping = clause.read()
        self._table = clause.table
        self._aggregates: dict[str, tuple[str, ApiCall]] = {}

    def results(self) -> Results:
        """Return the results.

        Raises
        ------
        SqlError
            With the position of what is not covered.
        """
        grouping, statement = self._grouping, self._statement
        check_timed(self._table, statement.select)
        keys = [self._columns.name(each) for each in grouping.keys]
        for name, item in zip(names_of(statement.items), statement.items, strict=True):
            self._collect_aggregates(item.node, name)
        if statement.having is not None:
            self._collect_aggregates(statement.having, None)
        aggregates = dict(self._aggregates.values())
        if not aggregates:
            self._aggregates["COUNT(*)"] = ("sql_rows", build_aggregate(_COUNT, self._columns))
            aggregates = {"sql_rows": self._aggregates["COUNT(*)"][1]}
        windowed = self._rank(self._window_step(keys))
        with errors_at(statement.select):
            outputs = windowed.call("with_outputs").call("aggregate", **aggregates)
        group_id = () if grouping.sets is None else (GROUPING_ID.name,)
        key_names = [self._table.timed_stream.source.display_name(key) for key in keys]
        number = () if self._ranking is None else (self._ranking.number,)
        names = (*key_names, *_BOUNDS, *aggregates, *group_id, *number)
        results = Results(outputs, names, grouping.window.assigner, start=self._start)
        selected = items_by_name(
            statement.items, lambda node: rewrite_over_results(node, self._to_result, _NOT_GROUPED)
        )
        selected.update({name: result_column(name) for name in number})
        having = statement.having
        where = having and rewrite_over_results(having, self._having_to_result, _NOT_GROUPED)
        if statement.order:
            raise sql_error(statement.order[0], _NO_ORDER)
        conditions = [*conjuncts(where), *self._table.window_conditions]
        with errors_at(statement.select):
            return results.select(selected, conjunction(conditions))

    def _window_step(self, keys: list[str]) -> ApiCall:
        grouping, stream = self._grouping, self._columns.stream
        with errors_at(self._statement.group or self._statement.select):
            if keys:
                windowed = stream.call("key_by", *keys).call("window", grouping.window.assigner)
            else:
                windowed = stream.call("window_all", grouping.window.assigner)
            if grouping.sets is not None:
                sets = [[self._columns.name(each) for each in some] for some in grouping.sets]
                windowed = windowed.call("grouping_sets", *sets)
            return self._settings.apply(windowed)

    def _rank(self, windowed: ApiCall) -> ApiCall:
        ranking = self._ranking
        if ranking is None:
            return windowed
        if self._statement.having is not None:
            rule = "HAVING would leave gaps in the numbers: filter in the outer query instead"
            raise sql_error(self._statement.having, rule)
        per = [*map(self._base_result, ranking.partition_by)]
        per = [_BOUNDS[0] if name == self._start else name for name in per]
        if not {*_BOUNDS} <= {*per}:
            raise sql_error(ranking.node, "PARTITION BY needs window_start and window_end")
        per = [name for name in per if name not in _BOUNDS]
        by = [*map(self._base_result, ranking.by)]
        arguments = {"descending": ranking.descending, "per": per, "number": ranking.number}
        with errors_at(ranking.node):
            return windowed.call("top_keys", ranking.count, by, **arguments)

    @property
    def _start(self) -> str | None:
        """The key that is the start of windows; see `Window`."""
        start = self._grouping.window.start
        return None if start is None else self._table.timed_stream.source.display_name(start)

    def _base_result(self, node: exp.Expr) -> str:
        """Return the original result that an outer query names."""
        items = self._statement.items
        for name, item in zip(names_of(items), items, strict=True):
            if isinstance(node, exp.Column) and name.lower() == node.name.lower():
                found = rewrite_over_results(item.node, self._to_result, _NOT_GROUPED)
                if isinstance(found, exp.Column):
                    return found.name
        raise sql_error(node, "results can be numbered by keys, bounds of windows and aggregates")

    # ---- results

    def _collect_aggregates(self, node: exp.Expr, label: str | None) -> None:
        """Build the aggregates of an expression; ``label``: its name, of an item of SELECT."""
        if isinstance(node, exp.GroupingId | exp.Grouping):
            return
        if isinstance(node, exp.Window):
            raise sql_error(
                node, "OVER cannot be used with GROUP BY: number results in an outer query"
            )
        if is_aggregate(node):
            text = canonical_text(node)
            if is_list_aggregate(node):
                self._collect_list(node, text)
            elif text not in self._aggregates:
                used = {name.lower() for name, _ in self._aggregates.values()}
                name = label or f"sql_result_{len(used)}"
                if name.lower() in used or name.lower() in self._key_names:
                    name = f"sql_result_{len(used)}"
                self._aggregates[text] = (name, build_aggregate(node, self._columns))
            return
        for child in node.iter_expressions():
            self._collect_aggregates(child, None)

    def _collect_list(self, node: exp.Expr, text: str) -> None:
        """Build what LISTAGG is made of: a list, and its length."""
        number = len(self._aggregates)
        *parts, _ = build_list_aggregate(node, self._columns)
        for kind, part in zip(("list", "count"), parts, strict=True):
            self._aggregates.setdefault(f"{text} {kind}", (f"sql_{kind}_{number}", part))

    def _list_result(self, node: exp.Expr) -> exp.Expr:
        """Return LISTAGG over results: null without values."""
        text = canonical_text(node)
        lists, count = (
            result_column(self._aggregates[f"{text} {kind}"][0]) for kind in ("list", "count")
        )
        separator = build_list_aggregate(node, self._columns)[-1]
        text_list = exp.ArrayToString(this=lists, expression=separator.copy())
        some = exp.GT(this=count, expression=exp.Literal.number(0))
        return exp.Case(ifs=[exp.If(this=some, true=text_list)])

    @cached_property
    def _key_names(self) -> set[str]:
        names = (self._columns.name(each).lower() for each in self._grouping.keys)
        return {*names, *_BOUNDS, GROUPING_ID.name.lower()}

    def _to_result(self, node: exp.Expr) -> exp.Expr | None:
        """Return the result that a node stands for; None if it is not a result itself."""
        if is_list_aggregate(node):
            return self._list_result(node)
        if is_aggregate(node) and not isinstance(node, exp.GroupingId | exp.Grouping):
            return result_column(self._aggregates[canonical_text(node)][0])
        if isinstance(node, exp.GroupingId | exp.Grouping):
            return self._grouping_result(node)
        window = self._window_of(node)
        if window is not None:
            return window_bound(window)
        for key in self._grouping.keys:
            if node == key or (
                isinstance(node, exp.Column)
                and isinstance(key, exp.Column)
                and self._table.owns(node)
                and self._columns.name(node) == self._columns.name(key)
            ):
                return result_column(self._columns.name(key))
        return None

    def _window_of(self, node: exp.Expr) -> str | None:
        call = self._grouping.call
        if call is None:
            return self._table.window_column(node)
        if not (isinstance(node, exp.Anonymous) and node.name.upper() in AUXILIARY_FUNCTIONS):
            return None
        kind = node.name.upper().partition("_")[0]
        same = [one.sql() for one in node.expressions] == [one.sql() for one in call.expressions]
        if kind != call.this or not same:
            raise sql_error(node, f"this must repeat the window of GROUP BY: {call.this}")
        return AUXILIARY_FUNCTIONS[node.name.upper()]

    def _grouping_result(self, node: exp.GroupingId | exp.Grouping) -> exp.Expr:
        grouping = self._grouping
        if grouping.sets is None:
            raise sql_error(node, "this needs GROUPING SETS, ROLLUP or CUBE")
        arguments = [each for each in (node.this, *node.expressions) if each is not None]
        if isinstance(node, exp.GroupingId):
            if not arguments or arguments == [*grouping.keys]:
                return result_column(GROUPING_ID.name)
            id_: exp.Expr = exp.Literal.number(0)
            for each in arguments:  # a digit for each key, as in the column of all keys
                twice = exp.Mul(this=exp.Paren(this=id_), expression=exp.Literal.number(2))
                id_ = exp.Add(this=twice, expression=self._is_absent(node, each))
            return exp.cast(exp.Paren(this=id_), exp.DType.BIGINT)
        key = arguments[0] if len(arguments) == 1 else exp.Null()
        return exp.cast(self._is_absent(node, key), exp.DType.TINYINT)

    def _is_absent(self, node: exp.Expr, key: exp.Expr) -> exp.Expr:
        """Return 1 where a key is not in the grouping set of a result, else 0."""
        keys = self._grouping.keys
        if key not in keys:
            name = "GROUPING_ID" if isinstance(node, exp.GroupingId) else "GROUPING"
            raise sql_error(node, f"{name} takes keys of GROUP BY")
        bit = 1 << (len(keys) - 1 - keys.index(key))
        shifted = exp.IntDiv(
            this=result_column(GROUPING_ID.name), expression=exp.Literal.number(bit)
        )
        is_absent = exp.Mod(this=exp.Paren(this=shifted), expression=exp.Literal.number(2))
        return exp.Paren(this=is_absent)

    def _having_to_result(self, node: exp.Expr) -> exp.Expr | None:
        """Like `_to_result`, in HAVING, which may also name items of SELECT."""
        found = self._to_result(node)
        if found is not None or not isinstance(node, exp.Column) or node.table:
            return found
        for item in self._statement.items:
            if item.alias is not None and item.alias.lower() == node.name.lower():
                return exp.Paren(
                    this=rewrite_over_results(item.node, self._to_result, _NOT_GROUPED)
                )
        return None


_COUNT = exp.Count(this=exp.Star())
