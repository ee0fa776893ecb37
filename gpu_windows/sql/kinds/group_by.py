"""Window aggregation: GROUP BY window_start, window_end, or GROUP BY TUMBLE(...)."""

from __future__ import annotations

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
from gpu_windows.sql.kinds.expanded_sets import ExpandedRows, combines_sets, expand_rows
from gpu_windows.sql.kinds.grouping_clause import GroupingClause, time_columns
from gpu_windows.sql.kinds.numbering import Numbering, directions_of
from gpu_windows.sql.syntax.statement import (
    Statement,
    conjunction,
    conjuncts,
    is_aggregate,
    names_of,
)
from gpu_windows.sql.syntax.window_functions import AUXILIARY_FUNCTIONS
from gpu_windows.sql.tables.columns import Columns
from gpu_windows.sql.tables.inputs import WINDOW_BOUNDS, check_timed, result_column, window_bound
from gpu_windows.sql.tables.processing_time import in_time_of
from gpu_windows.sql.tables.results import (
    Results,
    items_by_name,
    rewrite_over_results,
)
from gpu_windows.sql.translator import Translator

_NO_ORDER = "ORDER BY is not covered here: results are emitted as windows end"
_NOT_GROUPED = "this is neither an aggregate nor in GROUP BY"


def is_grouped(statement: Statement) -> bool:
    """Whether a query has GROUP BY, or aggregates without OVER."""
    return statement.group is not None or (statement.has_aggregates and not statement.over)


def read_group_by(
    statement: Statement, translator: Translator, numbering: Numbering | None = None
) -> Results:
    """Return aggregates per window.

    ``numbering``: of a query around it; then the results are its top-N, with their numbers: see
    `WindowedStream.top_keys`.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    return _WindowAggregation(statement, translator, numbering).results()


class _WindowAggregation:
    """Reads a window aggregation."""

    def __init__(
        self, statement: Statement, translator: Translator, numbering: Numbering | None
    ) -> None:
        self._statement, self._numbering = statement, numbering
        self._orders = [] if numbering is None else numbering.orders
        table = translator.table(statement.source)
        self._settings = translator.settings.for_inputs(table)
        table = in_time_of(table, time_columns(statement.group)).where(statement.where)
        self._columns = Columns(table)
        self._grouping = GroupingClause(statement, table, self._columns).read()
        self._table = self._grouping.table
        self._aggregates: dict[str, tuple[str, ApiCall]] = {}
        self._expanded: ExpandedRows | None = None

    def results(self) -> Results:
        """Return the results."""
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
        if grouping.sets is not None and not (
            self._numbering is None and combines_sets(grouping.window.assigner, aggregates.values())
        ):
            self._expanded = self._expand(keys)
        windowed = self._rank(self._window_step(keys))
        with errors_at(statement.select):
            outputs = windowed.call("with_outputs").call("aggregate", **aggregates)
        group_id = () if grouping.sets is None else (self._set_id,)
        key_names = [self._table.display_name(self._key(key)) for key in keys]
        number = () if self._numbering is None else (self._numbering.alias,)
        names = (*key_names, *WINDOW_BOUNDS, *aggregates, *group_id, *number)
        results = Results(outputs, names, grouping.window.assigner, start=self._start)
        selected = items_by_name(statement.items, self._rewrite)
        selected.update({name: result_column(name) for name in number})
        having = statement.having
        where = having and rewrite_over_results(having, self._having_to_result, _NOT_GROUPED)
        if statement.order:
            raise sql_error(statement.order[0], _NO_ORDER)
        conditions = [*conjuncts(where), *self._table.window_conditions]
        with errors_at(statement.select):
            return results.select(selected, conjunction(conditions))

    def _expand(self, keys: list[str]) -> ExpandedRows:
        """Return a row for each grouping set, of aggregates that need all values of a window."""
        sets = [[self._columns.name(each) for each in some] for some in self._grouping.sets or ()]
        with errors_at(self._statement.group or self._statement.select):
            return expand_rows(self._columns.stream, keys, sets)

    def _key(self, name: str) -> str:
        """Return the column of the rows that are grouped, for a key's."""
        return name if self._expanded is None else self._expanded.keys.get(name, name)

    @property
    def _set_id(self) -> str:
        """The result with the id of the grouping set."""
        return GROUPING_ID.name if self._expanded is None else self._expanded.set_id

    def _window_step(self, keys: list[str]) -> ApiCall:
        grouping, stream = self._grouping, self._columns.stream
        if self._expanded is not None:
            stream = self._expanded.stream
            keys = [*(self._expanded.keys[key] for key in keys), self._expanded.set_id]
        with errors_at(self._statement.group or self._statement.select):
            windowed = grouping.window.over(stream, keys)
            if grouping.sets is not None and self._expanded is None:
                sets = [[self._columns.name(each) for each in some] for some in grouping.sets]
                windowed = windowed.call("grouping_sets", *sets)
            return self._settings.apply(windowed)

    def _rank(self, windowed: ApiCall) -> ApiCall:
        numbering = self._numbering
        if numbering is None:
            return windowed
        if self._statement.having is not None:
            rule = "HAVING would leave gaps in the numbers: filter in the outer query instead"
            raise sql_error(self._statement.having, rule)
        per = [*map(self._base_result, numbering.partition_by)]
        per = [WINDOW_BOUNDS[0] if name == self._start else name for name in per]
        if not {*WINDOW_BOUNDS} <= {*per}:
            raise sql_error(numbering.call, "PARTITION BY needs window_start and window_end")
        per = [name for name in per if name not in WINDOW_BOUNDS]
        by = [self._base_result(each.this) for each in self._orders]
        directions = directions_of(self._orders)
        arguments = {"descending": directions, "per": per, "number": numbering.alias}
        with errors_at(numbering.call):
            return windowed.call("top_keys", numbering.count, by, **arguments)

    @property
    def _start(self) -> str | None:
        """The key that is the start of windows; see `Window`."""
        start = self._grouping.window.start
        return None if start is None else self._table.display_name(self._key(start))

    def _base_result(self, node: exp.Expr) -> str:
        """Return the original result that an outer query names."""
        items = self._statement.items
        for name, item in zip(names_of(items), items, strict=True):
            if isinstance(node, exp.Column) and name.lower() == node.name.lower():
                found = self._rewrite(item.node)
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
        return {*names, *WINDOW_BOUNDS, GROUPING_ID.name.lower()}

    def _rewrite(self, node: exp.Expr) -> exp.Expr:
        return rewrite_over_results(node, self._to_result, _NOT_GROUPED)

    def _to_result(self, node: exp.Expr) -> exp.Expr | None:
        """Return the result that a node stands for; None if it is not a result itself."""
        if is_list_aggregate(node):
            return self._list_result(node)
        if isinstance(node, exp.GroupingId | exp.Grouping):
            return self._grouping_result(node)
        if is_aggregate(node):
            return result_column(self._aggregates[canonical_text(node)][0])
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
                return result_column(self._key(self._columns.name(key)))
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
        keys = [*([node.this] if node.this else []), *node.expressions]
        if not keys and isinstance(node, exp.GroupingId):
            return result_column(self._set_id)
        if not keys:
            raise sql_error(node, "GROUPING takes a key of GROUP BY")
        bits = [self._grouping_bit(each) for each in keys]
        if len(bits) == 1 and isinstance(node, exp.Grouping):
            return exp.cast(bits[0], exp.DType.TINYINT)
        total: exp.Expr = bits[0]
        for bit in bits[1:]:
            twice = exp.Mul(this=exp.Paren(this=total), expression=exp.Literal.number(2))
            total = exp.Add(this=twice, expression=bit)
        return exp.cast(exp.Paren(this=total), exp.DType.BIGINT)

    def _grouping_bit(self, key: exp.Expr) -> exp.Expr:
        """Return 1 in results of sets without a key, else 0."""
        grouping = self._grouping
        indices = [i for i, each in enumerate(grouping.keys) if each == key]
        if not indices:
            raise sql_error(key, "GROUPING takes keys of GROUP BY")
        bit = 1 << (len(grouping.keys) - 1 - indices[0])
        shifted = exp.IntDiv(this=result_column(self._set_id), expression=exp.Literal.number(bit))
        return exp.Paren(
            this=exp.Mod(this=exp.Paren(this=shifted), expression=exp.Literal.number(2))
        )

    def _having_to_result(self, node: exp.Expr) -> exp.Expr | None:
        """Like `_to_result`, in HAVING, which may also name items of SELECT."""
        found = self._to_result(node)
        if found is not None or not isinstance(node, exp.Column) or node.table:
            return found
        for item in self._statement.items:
            if item.alias is not None and item.alias.lower() == node.name.lower():
                return exp.Paren(this=self._rewrite(item.node))
        return None


_COUNT = exp.Count(this=exp.Star())
