"""Patterns in the rows of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.built_in import count
from gpu_windows.aggregates.definitions import bind
from gpu_windows.column_types.logical import is_ordered
from gpu_windows.datastream.columns import bind_columns
from gpu_windows.datastream.steps import ConfigurableStep, R
from gpu_windows.errors import (
    InvalidDurationError,
    InvalidPatternError,
    NameClashError,
    QueryError,
    SqlError,
    require_extra,
)
from gpu_windows.functions.patterns.match import After, Skip
from gpu_windows.functions.patterns.pattern import Pattern
from gpu_windows.functions.top import check_order, directions
from gpu_windows.planning.kinds.match import MatchQuery
from gpu_windows.planning.own_columns import NO_TIME
from gpu_windows.runners.outputs import KeyedInput, Outputs, Source
from gpu_windows.vocabulary.options import Duration, Options, change_options, ticks

if TYPE_CHECKING:
    from gpu_windows.annotations import Column
    from gpu_windows.functions.patterns.match import Measure
    from gpu_windows.functions.patterns.program import RowReference

_SKIPS: Mapping[str, Skip] = {
    "skip to next row": Skip.TO_NEXT_ROW,
    "skip past last row": Skip.PAST_LAST_ROW,
}
_SKIPS_TO: Mapping[str, Skip] = {"skip to first ": Skip.TO_FIRST, "skip to last ": Skip.TO_LAST}


@dataclass(frozen=True)
class MatchStream(ConfigurableStep[R]):
    """A pattern in the rows of keys, before `measures` selects results of a match.

    Flink: MATCH_RECOGNIZE. A result is a match, and comes when the watermark has passed its rows.

    Examples
    --------
    >>> calls = gw.stream(
    ...     pa.table({"host": ["a"] * 3, "ok": [True, False, False], "ts": [0, 1, 2]})
    ... )
    >>> timed = calls.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> failures = timed.key_by("host").match_recognize("F{2}", {"F": "NOT F.ok"})
    >>> failures.measures(n="COUNT(F.ts)").to_pylist()
    [{'host': 'a', 'n': 2}]
    """

    keyed: KeyedInput
    pattern: Pattern
    define: Mapping[str, str]
    within: int | None
    after: After
    then: tuple[tuple[str | Column, bool], ...] = ()

    def then_by(self, *columns: str | Column, descending: bool | Sequence[bool] = False) -> Self:
        """Order rows of one time by other columns (SQL: ORDER BY time, others).

        Nulls are less than any value. Rows that are equal in these, too, come in order of arrival,
        or of what is said after it.

        Parameters
        ----------
        *columns : str or Column
            Numbers, booleans, dates, timestamps, texts.
        descending : bool or sequence of bool
            Whether the greatest come first; of each column, or of all.

        Raises
        ------
        QueryError
            If there is a number of ``descending`` other than that of the columns.

        Examples
        --------
        >>> bids = gw.stream(pa.table({"lot": [1, 1], "bid": [9, 5], "ts": [0, 0]}))
        >>> timed = bids.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> pairs = timed.key_by("lot").match_recognize("A B").then_by("bid")
        >>> pairs.measures(low="A.bid", high="B.bid").to_pylist()
        [{'lot': 1, 'low': 5, 'high': 9}]
        """
        pairs = zip(columns, directions(descending, len(columns)), strict=True)
        return replace(self, then=(*self.then, *pairs))

    def measures(self, /, **measures: str) -> R:
        """Return a row for every match (SQL: MEASURES ... ONE ROW PER MATCH).

        Parameters
        ----------
        **measures : str
            Result column to expression in SQL: ``first="FIRST(A.price)"``, ``n="COUNT(B.price)"``,
            ``fall="LAST(B.price) - A.price"``, ``time="MATCH_ROWTIME()"``. ``A.price`` is that of
            the last row of ``A``, ``price`` that of the last row of the match.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
            The keys, the measures.

        Raises
        ------
        SqlError
            If a condition or a measure cannot be read, or is not covered.

        Examples
        --------
        >>> prices = gw.stream(pa.table({"item": ["tea"] * 2, "price": [5, 3], "ts": [0, 1]}))
        >>> timed = prices.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> falls = timed.key_by("item").match_recognize("A B", {"B": "B.price < A.price"})
        >>> falls.measures(fall="A.price - B.price").to_pylist()
        [{'item': 'tea', 'fall': 2}]
        """
        require_extra("sqlglot", "sql", "SQL")
        from gpu_windows.expressions.sql_text import canonical_text, parse_expression
        from gpu_windows.functions.patterns.measures import Measures
        from gpu_windows.functions.patterns.navigation import Navigation

        if not measures:
            raise QueryError("a match is told by one measure at least: first='FIRST(A.price)'")
        navigation = Navigation(self.pattern, self.keyed.time)
        results = _Results(_Added(self.keyed.source), {*measures})
        conditions = self._conditions(navigation, results.added)
        reader = Measures(navigation, results)
        selected, texts = {}, {}
        for name, text in measures.items():
            with _naming(f"the measure {name}"):
                node = parse_expression(text)
                selected[name], texts[name] = reader.read(name, node), canonical_text(node)
        query = self._query(conditions, results, texts)
        outputs = results.added.source.outputs(query)
        if all(text is None for text in selected.values()):
            return self._end(outputs)
        keys = outputs.plan.query.display_keys
        columns = [{name: text or f"`{name}`"} for name, text in selected.items()]
        return self._end(outputs.select(*keys, *columns))

    def _conditions(self, navigation: Any, added: _Added) -> Any:
        from gpu_windows.expressions.sql_text import parse_expression
        from gpu_windows.functions.patterns.conditions import Compiler

        compiler = Compiler(navigation, added)
        for place, name in enumerate(self.pattern.names):
            text = self.define.get(name)
            with _naming(f"the condition of {name}"):
                compiler.add(place, None if text is None else parse_expression(text))
        return compiler.conditions()

    def _query(self, conditions: Any, results: _Results, texts: Mapping[str, str]) -> MatchQuery:
        from gpu_windows.functions.patterns.automaton import build_states
        from gpu_windows.functions.patterns.match import Match

        source, names = bind_columns(
            results.added.source, (each for each, _ in self.then), "__then"
        )
        check_order(source.schema, names)
        source, order = bind_columns(source, self.order, "__order")
        results.added.source = source
        match = Match(
            pattern=self.pattern,
            states=build_states(self.pattern),
            conditions=conditions,
            measures=tuple(results.measures),
            after=self.after,
            within=self.within,
            measure_texts=dict(texts),
            then=tuple(zip(names, (down for _, down in self.then), strict=True)),
            then_texts=tuple(f"{each}{' descending' if down else ''}" for each, down in self.then),
        )
        return MatchQuery(
            schema=source.schema,
            time=self.keyed.time,
            watermarks=self.keyed.watermarks,
            keys=self.keyed.keys,
            match=match,
            arrival_order=order,
            options=self.options_,
        )

    if TYPE_CHECKING:

        def with_outputs(self) -> MatchStream[Outputs]: ...  # noqa: D102 - `LastStep` has it


def match_stream(
    keyed: KeyedInput,
    pattern: str,
    define: Mapping[str, str] | None,
    within: Duration | None,
    after: str,
    options: Mapping[str, Any],
) -> MatchStream:
    """Return a pattern in the rows of keys; see `KeyedStream.match_recognize`.

    Raises
    ------
    QueryError
        If rows have no time.
    """
    read = Pattern.of(pattern)
    if keyed.time == NO_TIME:
        rule = (
            "rows need a time, for a pattern is found in their order: say event_time(column, "
            "watermarks), or ingestion_time() of a stream; there is none in processing time"
        )
        raise QueryError(rule, value=read.describe())
    length = None if within is None else ticks(within)
    if length is not None and length <= 0:
        raise InvalidDurationError("a match is within some time", value=within)
    return MatchStream(
        keyed=keyed,
        pattern=read,
        define=_conditions_by_variable(read, define or {}),
        within=length,
        after=_after(read, after),
        options_=change_options(Options(), dict(options)),
    )


def _conditions_by_variable(pattern: Pattern, define: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions by the names that the pattern has for variables."""
    if not isinstance(define, Mapping):
        rule = "define is a mapping of variables to conditions: {'B': 'B.price < A.price'}"
        raise InvalidPatternError(rule, value=repr(define))
    found: dict[str, str] = {}
    for name, text in define.items():
        place = pattern.index_of(str(name))
        if place is None:
            rule = f"define names variables of the pattern: {', '.join(pattern.names)}"
            raise InvalidPatternError(rule, value=repr(name))
        if pattern.names[place] in found:
            raise InvalidPatternError("a variable is defined once", value=name)
        found[pattern.names[place]] = text
    return found


def _after(pattern: Pattern, text: object) -> After:
    words = " ".join(text.split()) if isinstance(text, str) else ""
    plain = _SKIPS.get(words.lower())
    if plain is not None:
        return After(plain)
    for begins, skip in _SKIPS_TO.items():
        if words.lower().startswith(begins):
            variable = pattern.index_of(words[len(begins) :])
            if variable is not None:
                _check_skip(pattern, skip, variable)
                return After(skip, variable)
    choices = ", ".join([*_SKIPS, *(f"{each}{pattern.names[-1]}" for each in _SKIPS_TO)])
    rule = f"after is one of {choices}, of the variables {', '.join(pattern.names)}"
    raise InvalidPatternError(rule, value=text)


def _check_skip(pattern: Pattern, skip: Skip, place: int) -> None:
    """Refuse to go on at the first row of a match, where it would be found for ever."""
    variable = pattern.variables[place]
    is_first = place == 0 and (skip is Skip.TO_FIRST or variable.max_rows == 1)
    if is_first and variable.min_rows > 0:
        rule = "the search goes on after the first row of a match, or would find it for ever"
        raise InvalidPatternError(rule, value=variable.name)


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Name the text in errors about it."""
    try:
        yield
    except SqlError as error:
        raise SqlError(
            f"in {what}, {error.rule}",
            value=error.value,
            column=error.column,
            line=error.line,
            position=error.position,
        ) from error


class _Added:
    """A source, to which columns of expressions are added."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._added: dict[str, str] = {}

    def name(self, text: str) -> str:
        """Return the column of an expression over a row."""
        from sqlglot import exp

        from gpu_windows.expressions.columns import ColumnNames
        from gpu_windows.expressions.sql_text import parse_expression

        node = parse_expression(text)
        if isinstance(node, exp.Column):
            return ColumnNames(tuple(self.source.user_columns)).resolve(node)
        if text not in self._added:
            # of the text, for kept rows have it: the same text is the same column at each start
            name = f"__match_{sha256(text.encode()).hexdigest()[:12]}"
            if any(name == each.lower() for each in self.source.schema.names):
                raise NameClashError("columns are called so inside gpu_windows", value=name)
            self.source = self.source.add_columns({name: text})
            self._added[text] = name
        return self._added[text]

    def dtype(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return self.source.schema.field(name).type


class _Results:
    """Results of matches by name."""

    def __init__(self, added: _Added, wanted: set[str]) -> None:
        self.added = added
        self.measures: list[Measure] = []
        self._wanted = wanted
        self._names: dict[object, str] = {}

    def add_row_value(self, row: RowReference, text: str, wanted: str | None) -> str:
        """Return the name of a result: an expression over one row of a match."""
        from gpu_windows.functions.patterns.match import RowValue

        column = self.added.name(text)
        return self._add((row, column), wanted, lambda name: RowValue(name, row, column))

    def add_aggregate(
        self, variable: int, function: Callable[..., Aggregate], text: str | None,
        wanted: str | None,
    ) -> str:  # fmt: skip
        """Return the name of a result: an aggregate over the rows of a variable."""
        from gpu_windows.functions.patterns.match import VariableAggregate, VariableExtreme

        aggregate = count() if text is None else function(self.added.name(text))
        column = str(aggregate.column)

        def make(name: str) -> Measure:
            schema = self.added.source.schema
            kind = None if text is None else schema.field(column).type
            if aggregate.function in ("min", "max") and not is_ordered(kind):
                check_order(schema, [column])
                return VariableExtreme(name, variable, column, greatest=aggregate.function == "max")
            return VariableAggregate(
                variable, replace(bind(name, aggregate, schema), nullable=True)
            )

        return self._add((variable, aggregate.describe()), wanted, make)

    def _add(self, key: object, wanted: str | None, made: Callable[[str], Measure]) -> str:
        if wanted is None and key in self._names:
            return self._names[key]
        name = wanted or self._free()
        self.measures.append(made(name))
        self._names.setdefault(key, name)
        return name

    def _free(self) -> str:
        used = {*self._wanted, *(each.name for each in self.measures)}
        return next(n for n in (f"__told_{i}" for i in range(len(used) + 1)) if n not in used)
