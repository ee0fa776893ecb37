"""MATCH_RECOGNIZE: patterns in the rows of a table."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.intervals import ticks_of
from gpu_windows.expressions.places import placed, refused, written
from gpu_windows.functions.patterns.pattern import Pattern
from gpu_windows.sql.inputs import Columns, Input, check_timed
from gpu_windows.sql.kinds import with_kinds
from gpu_windows.sql.results import Results, outer, result
from gpu_windows.sql.said import Said
from gpu_windows.sql.statement import Statement
from gpu_windows.sql.translator import Translator
from gpu_windows.sql.windows import duration

_ONE_ROW = "ONE ROW PER MATCH"
_AFTER = "AFTER MATCH "


def is_match(statement: Statement, translator: Translator) -> bool:
    """Whether a query has MATCH_RECOGNIZE."""
    del translator
    return bool(statement.select.args.get("match"))


def read_match(statement: Statement, translator: Translator) -> Results:
    """Return what a statement chooses of the matches of a pattern.

    Raises
    ------
    SqlError
        With the place of what is not covered.
    """
    statement.refuse("a table with MATCH_RECOGNIZE is not joined: ask around it", "joins")
    of = translator.table(statement.source)
    match = statement.select.args["match"]
    results = _Match(match, of, translator).results()
    alias = match.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refused(alias, "names of columns are given by MEASURES ... AS", alias.name)
    name = alias.name if alias is not None else statement.source.alias_or_name
    around = statement.select.copy()
    around.set("match", None)
    around.args["from_"].set("this", exp.Table(this=exp.to_identifier(name, quoted=True)))
    return outer(Statement(around), results, Statement(around).where)


class _Match:
    """Reads the clauses of MATCH_RECOGNIZE."""

    def __init__(self, match: exp.MatchRecognize, of: Input, translator: Translator) -> None:
        self._match, self._of = match, of
        self._settings = translator.settings.over(of)
        self._columns = Columns(of)

    def results(self) -> Results:
        """Return all matches."""
        match, of = self._match, self._of
        if of.window is not None:
            raise refused(match, "a pattern is of the rows of a table, not of a window function")
        check_timed(of, match)
        self._check_rows()
        then, descending = self._order()
        partition = self._partition()
        keys = [of.column(each) for each in partition]
        measures = self._measures()
        if match.args.get("pattern") is None:
            raise refused(match, "MATCH_RECOGNIZE has a PATTERN")
        with placed(match):
            stream = self._columns.stream
            keyed = stream.call("key_by", *keys) if keys else stream
            method = "match_recognize" if keys else "match_recognize_all"
            step = keyed.call(method, *self._pattern(), **self._rest())
            if then:
                step = step.call("then_by", *then, descending=descending)
            outputs = self._settings.of(step).call("with_outputs").call("measures", **measures)
        public = self._of.timed.source.public_name
        results = Results(outputs, (*map(public, keys), *measures))
        shown = {each.name: result(public(key)) for each, key in zip(partition, keys, strict=True)}
        return results.select({**shown, **{name: result(name) for name in measures}})

    def _partition(self) -> list[exp.Column]:
        by = self._match.args.get("partition_by") or []
        wrong = [each for each in by if not isinstance(each, exp.Column)]
        if wrong:
            raise refused(wrong[0], "PARTITION BY takes columns: add one in a query within")
        return [*by]

    def _check_rows(self) -> None:
        rows = self._match.args.get("rows")
        if rows is not None and rows.name != _ONE_ROW:
            raise refused(self._match, f"a match is one row: {_ONE_ROW}", rows.name)

    def _order(self) -> tuple[list[str], list[bool]]:
        """Return what orders rows of one time, and whether each descends."""
        order = self._match.args.get("order")
        by: list[exp.Ordered] = [] if order is None else order.expressions
        others = by[1:]
        is_time = bool(
            by
            and isinstance(by[0].this, exp.Column)
            and not by[0].args.get("desc")
            and self._of.column(by[0].this) == self._of.time
        )
        if not is_time:
            rule = f"rows are ORDER BY their time, ascending, and others after it: {self._of.time}"
            raise refused(order or self._match, rule)
        for each in others:
            descends = bool(each.args.get("desc"))
            if each.args.get("nulls_first", not descends) == descends:
                raise refused(each, "nulls are less than values: leave out NULLS FIRST, LAST")
        names = [self._columns.name(each.this) for each in others]
        return names, [bool(each.args.get("desc")) for each in others]

    def _measures(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in self._match.args.get("measures") or ():
            node = each.this
            if each.args.get("window_frame") == "RUNNING":
                raise refused(node, "what is told of a match is FINAL")
            if not isinstance(node, exp.Alias):
                raise refused(node, "what is told of a match has a name: say AS")
            if node.alias.lower() in map(str.lower, found):
                raise refused(node, "what is told of a match has different names", node.alias)
            found[node.alias] = self._text(node.this)
        if not found:
            raise refused(self._match, "MATCH_RECOGNIZE has MEASURES")
        return found

    def _pattern(self) -> tuple[str, dict[str, str]]:
        pattern = " ".join(self._match.args["pattern"].name.split())
        with placed(self._match):
            read = Pattern.of(pattern)
        define: dict[str, str] = {}
        for each in self._match.args.get("define") or ():
            if each.alias in define:
                raise refused(each, "a variable is defined once", each.alias)
            if read.place(each.alias) is not None:  # else it says nothing of the pattern
                define[each.alias] = self._text(each.this)
        return pattern, define

    def _rest(self) -> dict[str, Said | str]:
        rest: dict[str, Said | str] = {}
        within, after = self._match.args.get("within"), self._match.args.get("after")
        if within is not None and (length := ticks_of(within)):
            rest["within"] = duration(length)  # of 0 it says nothing
        if after is not None:
            words = after.name.removeprefix(_AFTER).split()
            if (
                words[2] in ("FIRST", "LAST", "TO") and words[1] == "TO"
            ):  # TO alone: to the last row
                which = "last" if words[2] == "TO" else words[2].lower()
                rest["after"] = f"skip to {which} {words[3]}"
            else:
                rest["after"] = " ".join(words).lower()
        return rest

    def _text(self, node: exp.Expr) -> str:
        """Return an expression over a match, with the names that columns have in the stream."""

        def renamed(each: exp.Expr) -> exp.Expr:
            if not isinstance(each, exp.Column):
                return each
            if len(each.parts) > 2:
                raise refused(each, "a column of a match is named by its variable and itself")
            if isinstance(each.this, exp.Star):
                return each
            name = exp.to_identifier(self._of.column(exp.column(each.this.copy())), quoted=True)
            table = each.args.get("table")
            return exp.Column(this=name, table=None if table is None else table.copy())

        with placed(node):
            return written(with_kinds(node.copy().transform(renamed), self._of.kind_of))
