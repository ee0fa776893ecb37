"""Aggregates over the rows before a row: OVER; rows in order of time: ORDER BY."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

import gpu_windows.aggregates.built_in as gw
from gpu_windows.errors import QueryError
from gpu_windows.expressions.intervals import ticks_of
from gpu_windows.expressions.places import key_of, placed, refused
from gpu_windows.sql.aggregates import aggregate
from gpu_windows.sql.inputs import Columns, Input, check_timed
from gpu_windows.sql.results import Results, Settings, meant, name_of, named_items, result
from gpu_windows.sql.said import Said, made
from gpu_windows.sql.statement import Item, Statement, units
from gpu_windows.sql.translator import Translator
from gpu_windows.sql.windows import duration
from gpu_windows.vocabulary.frames import Range, Rows

_OTHER_ORDER = (
    "by another order than time, ascending, the first rows are numbered: ROW_NUMBER, and in a "
    "query around WHERE number <= 3, or = 1"
)
_ROW = "of a row its columns stand in a result, and calls with OVER"


def has_over(statement: Statement, translator: Translator) -> bool:
    """Whether the list of SELECT has calls with OVER."""
    del translator
    return bool(statement.over)


def read_over(statement: Statement, translator: Translator) -> Results:
    """Return rows with aggregates over the rows before them.

    Raises
    ------
    SqlError
        With the place of what is not covered.
    """
    of = translator.table(statement.source)
    statement.refuse("rows with OVER come in order of time: leave ORDER BY out", "order")
    return _Over(statement, of, translator.settings).results()


def is_ordered(statement: Statement, translator: Translator) -> bool:
    """Whether a query has ORDER BY."""
    del translator
    return bool(statement.order)


def read_ordered(statement: Statement, translator: Translator) -> Results:
    """Return rows in order of their time, all keys in one sequence.

    Raises
    ------
    SqlError
        If they are ordered by something else, which on a stream has no end.
    """
    of = translator.table(statement.source)
    first, *more = statement.order
    by = first.this
    ascends = not first.args.get("desc")
    if more or not ascends or not isinstance(by, exp.Column) or of.window is not None:
        rule = "rows of a stream are ordered by their time, ascending, and by that alone"
        raise refused(first, rule)
    check_timed(of, by, of.column(by))
    return _Over(statement, of, translator.settings).results()


class _Over:
    """Reads calls with OVER."""

    def __init__(self, statement: Statement, of: Input, settings: Settings) -> None:
        if of.window is not None:
            raise refused(statement.select, "OVER is over rows: of windows number the results")
        self._statement, self._settings = statement, settings.over(of)
        self._of = of.where(statement.where)
        self._columns = Columns(self._of)
        self._calls: dict[str, str] = {}

    def results(self) -> Results:
        """Return the results."""
        statement = self._statement
        items = self._items()
        check_timed(self._of, statement.select)
        framed = self._framed(items)
        keys = self._keys()
        carried = self._carried(items)
        if statement.having is not None:
            raise refused(statement.having, "HAVING goes with GROUP BY")
        with placed(statement.select):
            stream = self._columns.stream.call("key_by", *keys)
            step = self._settings.of(stream.call("over"))
            outputs = step.call("with_outputs").call("aggregate", carried, **framed)
        names = tuple(outputs.value.plan.result_schema.names)
        public = tuple(map(self._of.timed.source.public_name, names))
        named = named_items(items, lambda node: meant(node, self._meaning, _ROW))
        with placed(statement.select):
            return Results(outputs, public).select(named)

    def _items(self) -> tuple[Item, ...]:
        """Return the list of SELECT, ``*`` written out."""
        items: list[Item] = []
        for item in self._statement.items:
            if self._of.is_star(item.node):
                items += (Item(result(name), None) for name in self._of.names.known)
            else:
                items.append(item)
        return tuple(items)

    def _framed(self, items: Sequence[Item]) -> dict[str, Said]:
        """Return what is computed, by its name."""
        framed: dict[str, Said] = {}
        taken = {name.lower() for name in self._of.names.known}
        for item in items:
            for call in item.node.find_all(exp.Window):
                text = key_of(call)
                if text in self._calls:
                    continue
                name = name_of(item) if item.node is call else ""
                if not name or name.lower() in {*taken, *map(str.lower, framed)}:
                    name = f"sql_result_{len(framed)}"
                self._calls[text] = name
                framed[name] = self._call(call)
        if not framed:
            everything = made("gw.Rows", Rows, 0)
            framed["sql_rows"] = _line(made("gw.count", gw.count).call("over", everything))
        return framed

    def _call(self, call: exp.Window) -> Said:
        whole = self._statement.window(call)
        self._check_order(call, whole)
        function = whole.this
        plain = _NUMBERED.get(type(function))
        with placed(call):
            if plain is not None:
                text, make = plain
                return made(text, make)
            if isinstance(function, exp.Lag | exp.Lead):
                return self._apart(call, function)
            of = aggregate(function, self._columns)
            return _line(of.call("over", _frame(call, whole.args.get("spec"))))

    def _apart(self, call: exp.Window, function: exp.Lag | exp.Lead) -> Said:
        rows = function.args.get("offset") or exp.Literal.number(1)
        if function.args.get("default") is not None or not rows.is_int:
            raise refused(call, "LAG and LEAD take a column and a number that is written out")
        text, make = ("gw.lag", gw.lag) if isinstance(function, exp.Lag) else ("gw.lead", gw.lead)
        return made(text, make, self._columns.name(function.this), int(rows.name))

    def _check_order(self, call: exp.Window, whole: exp.Window) -> None:
        order = whole.args.get("order")
        by = order.expressions if order is not None else []
        one = len(by) == 1 and isinstance(by[0].this, exp.Column) and not by[0].args.get("desc")
        column = self._of.column(by[0].this) if one else None
        if isinstance(whole.this, tuple(_NUMBERED)) and column != self._of.time:
            raise refused(call, _OTHER_ORDER)
        if column is None:
            raise refused(call, "OVER is ORDER BY the time of the rows, ascending")
        check_timed(self._of, by[0], column)

    def _keys(self) -> list[str]:
        """Return the columns after PARTITION BY, which all calls share."""
        found: list[list[str]] = []
        for call in self._statement.over:
            whole = self._statement.window(call)
            found.append(
                [self._columns.name(each) for each in whole.args.get("partition_by") or ()]
            )
        first = found[0] if found else []
        for call, keys in zip(self._statement.over, found, strict=True):
            if sorted(keys) != sorted(first):
                raise refused(call, "all OVER of a query have the same PARTITION BY")
        return first or [self._columns.added("true")]

    def _carried(self, items: Sequence[Item]) -> list[str]:
        """Return the columns of rows that stand in results."""
        carried: dict[str, None] = {}
        for item in items:
            for unit in units(item.node):
                if isinstance(unit, exp.Column):
                    carried[self._of.column(unit)] = None
                elif not isinstance(unit, exp.Window):
                    raise refused(
                        unit, "an aggregate goes with OVER or with GROUP BY, not with both"
                    )
        return [*carried]

    def _meaning(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Window):
            return result(self._calls[key_of(node)])
        if isinstance(node, exp.Column):
            return result(self._of.timed.source.public_name(self._of.column(node)))
        return None


_NUMBERED = {
    exp.RowNumber: ("gw.row_number", gw.row_number),
    exp.Rank: ("gw.rank", gw.rank),
    exp.DenseRank: ("gw.dense_rank", gw.dense_rank),
}


def _line(said: Said) -> Said:
    return Said(said.value, "".join(part.strip() for part in said.text.splitlines()))


def _frame(call: exp.Window, spec: exp.Expr | None) -> Said:
    """Return a frame; without one it is all rows up to those of the same time, as in Spark."""
    if spec is None:
        return made("gw.Range", Range)
    if spec.args["kind"].upper() not in ("ROWS", "RANGE"):
        raise refused(call, "a frame is of ROWS or of a RANGE of time")
    in_time = spec.args["kind"].upper() == "RANGE"
    if spec.args.get("exclude"):
        raise refused(call, "EXCLUDE is not covered")
    start = _bound(call, spec.args.get("start"), spec.args.get("start_side"), in_time=in_time)
    end = spec.args.get("end")
    if end is None:
        end = "CURRENT ROW"
    stop = _bound(call, end, spec.args.get("end_side"), in_time=in_time)
    kind, text = (Range, "gw.Range") if in_time else (Rows, "gw.Rows")
    preceding = None if start is None else -start
    shown = [_shown(preceding, in_time=in_time), _shown(stop, in_time=in_time)]
    if stop == 0:
        shown = [] if preceding is None else shown[:1]
    try:
        return made(text, kind, *shown)
    except QueryError as error:
        raise refused(call, error.rule, error.value) from error


def _shown(distance: int | None, *, in_time: bool) -> Said | int | None:
    return duration(distance) if in_time and distance is not None else distance


def _bound(call: exp.Window, bound: object, side: str | None, *, in_time: bool) -> int | None:
    """Return a bound, from the row on: negative is before it, None is without an end."""
    if bound == "CURRENT ROW":
        return 0
    if bound == "UNBOUNDED":
        return None
    assert isinstance(bound, exp.Expr)
    if in_time:
        distance = ticks_of(bound)
    elif bound.is_int:
        distance = int(bound.name)
    else:
        raise refused(call, "ROWS are counted by a number that is written out")
    return -distance if side == "PRECEDING" else distance
