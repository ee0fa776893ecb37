"""Aggregates over frames of rows: OVER; and rows sorted by time: ORDER BY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from gpu_windows.aggregates.built_in import count
from gpu_windows.aggregates.over import dense_rank, lag, lead, rank, row_number
from gpu_windows.errors import QueryError
from gpu_windows.expressions.intervals import interval_ticks
from gpu_windows.expressions.sql_text import canonical_text, errors_at, sql_error
from gpu_windows.sql.api_call import ApiCall, call_api
from gpu_windows.sql.kinds.aggregates import build_aggregate
from gpu_windows.sql.syntax.statement import Item, Statement, names_of, outermost_parts
from gpu_windows.sql.syntax.window_functions import duration_call
from gpu_windows.sql.tables.columns import Columns
from gpu_windows.sql.tables.inputs import Input, check_timed, result_column
from gpu_windows.sql.tables.processing_time import (
    in_time_of,
    is_in_ingestion_time,
    order_columns,
)
from gpu_windows.sql.tables.results import (
    Results,
    Settings,
    items_by_name,
    rewrite_over_results,
)
from gpu_windows.sql.translator import Translator
from gpu_windows.vocabulary.frames import Range, Rows

_OTHER_ORDER = (
    "an order other than ascending time is covered for top-N alone: ROW_NUMBER, and in an outer "
    "query WHERE number <= 3, or = 1"
)
_OTHER_RANK = (
    "RANK and DENSE_RANK are covered in ascending order of time alone: for top-N use ROW_NUMBER, "
    "and in an outer query WHERE number <= 3"
)
_IN_WINDOWS = (
    "in windows there is ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY ...) "
    "alone, with WHERE number <= 3 in an outer query; OVER takes rows without windows, or results"
)
_NOT_IN_RESULT = "results can have columns of the row, and calls with OVER"


def read_over(statement: Statement, translator: Translator) -> Results:
    """Return rows with aggregates over their frames.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    table = translator.table(statement.source)
    statement.refuse("rows with OVER are emitted in order of time: leave out ORDER BY", "order")
    return _Over(statement, table, translator.settings).results()


def read_ordered(statement: Statement, table: Input, translator: Translator) -> Results:
    """Return rows of a stream sorted by event time, over all keys.

    Raises
    ------
    SqlError
        If they are sorted by anything else, which never ends on a stream.
    """
    first, *more = statement.order
    by = first.this
    ascends = not first.args.get("desc")
    if more or not ascends or not isinstance(by, exp.Column) or table.window is not None:
        rule = "rows of a stream can be sorted by ascending event time alone"
        raise sql_error(first, rule)
    check_timed(table, by, table.column(by))
    return _Over(statement, table, translator.settings).results()


class _Over:
    """Reads calls with OVER."""

    def __init__(self, statement: Statement, table: Input, settings: Settings) -> None:
        if table.window is not None:
            raise sql_error(statement.over[0] if statement.over else statement.select, _IN_WINDOWS)
        self._statement, self._settings = statement, settings.for_inputs(table)
        table = in_time_of(table, order_columns(statement, statement.over))
        self._table = table.where(statement.where)
        self._columns = Columns(self._table)
        self._calls: dict[str, str] = {}

    def results(self) -> Results:
        """Return the results."""
        statement = self._statement
        items = self._table.expand_star(statement.items)
        check_timed(self._table, statement.select)
        aggregates = self._framed_aggregates(items)
        keys = self._keys()
        carried = self._carried_columns(items)
        if statement.having is not None:
            raise sql_error(statement.having, "HAVING needs GROUP BY")
        with errors_at(statement.select):
            stream = self._columns.stream.call("key_by", *keys)
            step = self._settings.apply(stream.call("over"))
            outputs = step.call("with_outputs").call("aggregate", carried, **aggregates)
        names = map(self._table.display_name, outputs.value.plan.result_schema.names)
        selected = items_by_name(
            items, lambda node: rewrite_over_results(node, self._to_result, _NOT_IN_RESULT)
        )
        with errors_at(statement.select):
            return Results(outputs, tuple(names)).select(selected)

    def _framed_aggregates(self, items: Sequence[Item]) -> dict[str, ApiCall]:
        """Return the aggregates with their frames, by name."""
        aggregates: dict[str, ApiCall] = {}
        used = {name.lower() for name in self._table.names.names}
        for label, item in zip(names_of(items), items, strict=True):
            for call in item.node.find_all(exp.Window):
                text = canonical_text(call)
                if text in self._calls:
                    continue
                name = label if item.node is call else ""
                if not name or name.lower() in {*used, *map(str.lower, aggregates)}:
                    name = f"sql_result_{len(aggregates)}"
                self._calls[text] = name
                aggregates[name] = self._call(call)
        if not aggregates:
            everything = call_api(Rows, 0)
            rows = call_api(count).call("over", everything)
            aggregates["sql_rows"] = rows.on_one_line()
        return aggregates

    def _call(self, call: exp.Window) -> ApiCall:
        whole = self._statement.window(call)
        self._check_order(call, whole)
        function = whole.this
        ranking = _RANKING.get(type(function))
        with errors_at(call):
            if ranking is not None:
                return call_api(ranking)
            if isinstance(function, exp.Lag | exp.Lead):
                return self._neighbor(call, function)
            aggregate = build_aggregate(function, self._columns)
            frame = _frame(call, whole.args.get("spec"))
            if is_in_ingestion_time(self._table) and frame.value == Range():
                frame = call_api(Rows)  # one row after another, as Flink
            return aggregate.call("over", frame).on_one_line()

    def _neighbor(self, call: exp.Window, function: exp.Lag | exp.Lead) -> ApiCall:
        rows = function.args.get("offset") or exp.Literal.number(1)
        if function.args.get("default") is not None or not rows.is_int:
            raise sql_error(call, "LAG and LEAD take a column and a literal number of rows")
        column, distance = self._columns.name(function.this), int(rows.name)
        if isinstance(function, exp.Lag):
            return call_api(lag, column, distance, by_time=True)
        return call_api(lead, column, distance)

    def _check_order(self, call: exp.Window, whole: exp.Window) -> None:
        order = whole.args.get("order")
        by = order.expressions if order is not None else []
        one = len(by) == 1 and isinstance(by[0].this, exp.Column) and not by[0].args.get("desc")
        column = self._table.column(by[0].this) if one else None
        if isinstance(whole.this, tuple(_RANKING)) and column != self._table.time:
            is_number = isinstance(whole.this, exp.RowNumber)
            raise sql_error(call, _OTHER_ORDER if is_number else _OTHER_RANK)
        if column is None:
            raise sql_error(call, "OVER needs ORDER BY the event time, ascending")
        check_timed(self._table, by[0], column)

    def _keys(self) -> list[str]:
        """Return the columns of PARTITION BY, which all calls share."""
        found: list[list[str]] = []
        for call in self._statement.over:
            whole = self._statement.window(call)
            found.append(
                [self._columns.name(each) for each in whole.args.get("partition_by") or ()]
            )
        first = found[0] if found else []
        for call, keys in zip(self._statement.over, found, strict=True):
            if sorted(keys) != sorted(first):
                raise sql_error(call, "all OVER of a query must have the same PARTITION BY")
        return first or [self._columns.add("true")]

    def _carried_columns(self, items: Sequence[Item]) -> list[str]:
        """Return the columns of rows that results need."""
        carried: dict[str, None] = {}
        for item in items:
            for part in outermost_parts(item.node):
                if isinstance(part, exp.Column):
                    carried[self._table.column(part)] = None
                elif not isinstance(part, exp.Window):
                    raise sql_error(part, "use aggregates with OVER or with GROUP BY, not both")
        return [*carried]

    def _to_result(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Window):
            return result_column(self._calls[canonical_text(node)])
        if isinstance(node, exp.Column):
            return self._table.column_result(node)
        return None


_RANKING = {exp.RowNumber: row_number, exp.Rank: rank, exp.DenseRank: dense_rank}
_FRAMES: Mapping[str, type[Rows | Range]] = {"ROWS": Rows, "RANGE": Range}


def _frame(call: exp.Window, spec: exp.Expr | None) -> ApiCall:
    """Return a frame; the default is all rows up to those of the same time, as in Spark."""
    if spec is None:
        return call_api(Range)
    kind = _FRAMES.get(spec.args["kind"].upper())
    if kind is None:
        raise sql_error(call, "a frame must be ROWS, or a RANGE of time")
    if spec.args.get("exclude"):
        raise sql_error(call, "EXCLUDE is not covered")
    in_time, end = kind is Range, spec.args.get("end") or "CURRENT ROW"
    start = _bound(call, spec.args.get("start"), spec.args.get("start_side"), in_time=in_time)
    stop = _bound(call, end, spec.args.get("end_side"), in_time=in_time)
    distances = [None if start is None else -start, stop]
    if stop == 0:
        distances = [] if start is None else distances[:1]
    arguments = [
        duration_call(each) if in_time and each is not None else each for each in distances
    ]
    try:
        return call_api(kind, *arguments)
    except QueryError as error:
        raise sql_error(call, error.rule, error.value) from error


def _bound(call: exp.Window, bound: object, side: str | None, *, in_time: bool) -> int | None:
    """Return a bound relative to the row: negative is before it, None is unbounded."""
    if bound == "CURRENT ROW":
        return 0
    if bound == "UNBOUNDED":
        return None
    if not isinstance(bound, exp.Expr):
        raise sql_error(call, "a frame is BETWEEN one bound AND another")
    if in_time:
        distance = interval_ticks(bound)
    elif bound.is_int:
        distance = int(bound.name)
    else:
        raise sql_error(call, "ROWS takes a literal number of rows")
    return -distance if side == "PRECEDING" else distance
