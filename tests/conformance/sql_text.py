"""Statements of scenarios as they were recorded, asked through `gpu_windows.sql`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.planning.plan import ARRIVAL, Plan
from gpu_windows.planning.query import Query
from gpu_windows.runners.arrow_selection import apply_selections
from gpu_windows.runners.arrow_source import ArrowOutputs
from gpu_windows.runners.local import with_timestamps, without_own
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from tests.conformance.cases import INSTANT, Case, Skip
from tests.conformance.keyed_top import CHANGES
from tests.conformance.scenario import Record, Scenario
from tests.conformance.statements import lost_early_windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Columns of the tables of statements; ``rt`` is their time, ``idx`` their order.
_SCHEMA = pa.schema(
    {
        "key": pa.string(),
        "ts": pa.int64(),
        "value": pa.float64(),
        "idx": pa.int64(),
        "rt": INSTANT,
    }
)
_TICKS_PER_MS = 1_000
#: Means of whole numbers, which are whole numbers in Flink.
_MEAN = re.compile(r"AVG\((\w\.)?(idx|ts)\)")
_TABLES = {None: "T", "left": "L", "right": "R"}


def sql_text(scenario: Scenario, ticks_per_ms: int) -> SqlText | Skip:
    """Return a statement by its text.

    Where a tick is a millisecond its seconds are milliseconds: a thousandth of them.
    """
    if scenario.sql is None:
        return Skip("it has no SQL")
    if any(name.startswith("table.exec.emit.") for name in scenario.sql_options):
        return Skip("early and late firings are settings of Flink's: EarlyAndLateTrigger")
    if (skip := lost_early_windows(scenario)) is not None:
        return skip
    if scenario.operator.whole.parameters.get("not_null"):
        return Skip("in Flink a column that cannot be null has -1 where a variable has no row")
    text = scenario.sql
    if scenario.operator.kind == "sql_match":
        text = _MEAN.sub(r"CAST(\g<0> AS BIGINT)", text)
    if ticks_per_ms != _TICKS_PER_MS:
        text = text.replace(" SECOND", " MILLISECOND")
    whole = scenario.operator.whole
    of_frame = scenario.operator.kind == "over" and whole.parameters.get("preceding") is not None
    sides = {record.side for record in scenario.records}
    is_of_one = None in sides or not sides
    return SqlText(scenario, text, ticks_per_ms, is_of_one=is_of_one, of_frame=of_frame)


class SqlText(Case):
    """A statement, and the rows that it is asked of.

    Parameters
    ----------
    scenario : Scenario
    text : str
    ticks_per_ms : int
    is_of_one : bool
        Whether it is FROM one table.
    of_frame : bool
        Whether frames have a beginning: then Flink takes no rows of 1970 or before.
    """

    def __init__(
        self, scenario: Scenario, text: str, ticks_per_ms: int, *, is_of_one: bool, of_frame: bool
    ) -> None:
        self.sides = (None,) if is_of_one else ("left", "right")
        self.is_changelog = scenario.operator.kind == "top_n"  # type: ignore[misc]
        self._text, self._ticks, self._of_frame = text, ticks_per_ms, of_frame
        self._of_rows = scenario.operator.kind == "window_tvf_rows"  # which has their time
        told = scenario.operator.whole.parameters.get("measures") or {}
        assert isinstance(told, dict)
        self._rowtime = next((n for n, of in told.items() if of == "MATCH_ROWTIME()"), None)
        self._asked: gw.typing.Outputs | None = None
        self._first = scenario.records[0].seq if scenario.records else 0
        self._records = scenario.records
        self._rows: pa.Table | None = None
        self._places: dict[int, int] = {}

    def _outputs(
        self, tables: Sequence[Any], watermarks: WatermarkStrategy, options: Options
    ) -> gw.typing.Outputs:
        streams = {
            _TABLES[side]: gw.stream(table).event_time("rt", watermarks)
            for side, table in zip(self.sides, tables, strict=True)
        }
        given = {name: each for name, each in vars(options).items() if each is not None}
        return gw.sql(self._text, **streams).arrival_order("idx").options(**given).outputs()

    def _local(self, tables: Sequence[pa.Table], options: Options) -> gw.typing.Outputs:
        return self._outputs(tables, WatermarkStrategy.for_monotonous_timestamps(), options)

    def query(self, options: Options) -> Query:
        """Return the query that the text makes of tables without rows."""
        self._asked = self._local([_SCHEMA.empty_table()] * len(self.sides), options)
        return self._asked.plan.query

    def outputs(
        self, frames: Sequence[DataFrame], options: Options, watermarks: WatermarkStrategy
    ) -> gw.typing.Outputs:
        """Return the outputs of the text over a DataFrame for each side."""
        return self._outputs(frames, watermarks, options)

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of a table of the statement."""
        columns: dict[str, Iterable[object]] = self._table(records, self._ticks).to_pydict()
        return columns

    def batch(self, records: Sequence[Record], plan: Plan) -> pa.Table:
        """Return records as the text gives them to an operator, in their order."""
        taken = self._taken(records)
        if self._rows is None:
            self._rows = self._all_rows(plan)
        places = pa.array([self._places[record.seq] for record in taken], pa.int64())
        rows = self._rows.take(places)
        if ARRIVAL in plan.order:
            seqs = pa.array([r.seq for r in taken], pa.int64())
            rows = rows.append_column(ARRIVAL, seqs)
        return rows

    def _all_rows(self, plan: Plan) -> pa.Table:
        """Return all records as the text gives them to an operator, side by side."""
        by_side = [[r for r in self._records if r.side == side] for side in self.sides]
        tables = [self._table(each, self._ticks) for each in by_side]
        self._places = {r.seq: i for i, r in enumerate(r for each in by_side for r in each)}
        found = self._local(tables, plan.query.options)
        assert isinstance(found, ArrowOutputs)
        assert isinstance(found.data, pa.Table)
        rows = found.data.select([name for name in plan.input_columns if name != ARRIVAL])
        at = rows.schema.get_field_index(plan.query.time)
        return rows.set_column(at, plan.query.time, rows.column(at).cast(pa.int64()))

    def table(self, records: Sequence[Record], ticks_per_ms: int) -> pa.Table:
        """Return records as rows of a table of the statement."""
        return self._table(self._taken(records), ticks_per_ms)

    def _table(self, records: Sequence[Record], ticks_per_ms: int) -> pa.Table:
        columns = {
            "key": [r.key for r in records],
            "ts": [r.ts for r in records],
            "value": [r.value for r in records],
            "idx": [r.seq for r in records],
            "rt": pa.array([r.ts * ticks_per_ms for r in records], pa.int64()).cast(INSTANT),
        }
        return pa.table(columns, schema=_SCHEMA)

    def _taken(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records that Flink does not drop because they are of 1970 or before."""
        return [r for r in records if r.ts > 0] if self._of_frame else records

    def seq_of(self, row: Mapping[str, Any]) -> int:
        """Return any record: what is late in a statement is dropped."""
        del row
        return self._first

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the statement shows."""
        return {name: self._shown(value) for name, value in row.items()}

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement: of an operator's result what the text chooses of it."""
        if self._asked is not None:
            row = self._chosen(row)
        shown = {name: value for name, value in row.items() if name != "change"}
        bare = {"window_start", "window_end"} - {*self._names}
        shown = {name: value for name, value in shown.items() if name not in bare}
        op = CHANGES[row["change"]] if self.is_changelog else "+I"
        payload = self.payload(shown)
        time = payload.get("window_time") if self._of_rows else None
        if self._rowtime is not None:
            time = payload[self._rowtime]
        return {"op": op, **payload, "timestamp": time}

    @property
    def _names(self) -> tuple[str, ...]:
        from sqlglot import exp

        return _names_of(self._text, exp)

    def _chosen(self, row: Mapping[str, Any]) -> dict[str, Any]:
        assert self._asked is not None
        plan = self._asked.plan
        raw = pa.Table.from_pylist([dict(row)], schema=plan.result_schema)
        named = raw.rename_columns([*map(plan.query.display_name, raw.column_names)])
        shown = without_own(with_timestamps(plan, named))
        (chosen,) = apply_selections(shown, self._asked.selections).to_pylist()
        assert isinstance(chosen, dict)
        return chosen

    def _shown(self, value: Any) -> Any:
        """Return a time in milliseconds."""
        if not isinstance(value, datetime):
            return value
        ticks = pa.scalar(value, INSTANT).cast(pa.int64()).as_py()
        return ticks // self._ticks


@lru_cache(maxsize=64)
def _names_of(text: str, exp: Any) -> tuple[str, ...]:
    from gpu_windows.expressions.sql_text import parse_tree

    tree = parse_tree(text)
    assert isinstance(tree, exp.Select)
    return tuple(each.alias_or_name for each in tree.expressions)
