"""Grouping sets as an operator for each of them, which is the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.kinds.grouping import GROUPING_ID, GroupingSets
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from tests.reference.run import reference_operator


def truth(planned: Plan, grouping: GroupingSets | None) -> Operator:
    """Return the operator of a plan, or of each grouping of its keys."""
    return reference_operator(planned) if grouping is None else OneByOne(planned, grouping)


class OneByOne(Operator):
    """An operator for each grouping; late rows and what is counted of rows are the first one's."""

    def __init__(self, planned: Plan, grouping: GroupingSets) -> None:
        query = planned.query
        assert isinstance(query, WindowQuery)
        self._all, self._schema, self._sets = query.keys, planned.result_schema, grouping.sets
        self._each = [
            build_operator(
                plan(
                    replace(query, keys=tuple(query.keys[place] for place in some)),
                    bounded=False,
                    spark=True,
                )
            )
            for some in self._sets
        ]

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Give all of them the rows."""
        return self._together(operator.process(batch) for operator in self._each)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Advance all of them."""
        return self._together(each.advance_watermark(watermark) for each in self._each)

    def state_size(self) -> dict[str, int]:
        """Return what the first one has."""
        return self._each[0].state_size()

    def _together(self, found: Iterable[Iterable[Emission]]) -> Iterator[Emission]:
        for number, (some, emissions) in enumerate(zip(self._sets, found, strict=True)):
            for emission in emissions:
                results = self._whole(emission.results, some)
                if number == 0:
                    yield replace(emission, results=results)
                else:
                    fired = Counters(fired=emission.counters.fired)
                    yield Emission(results, pa.table({}), fired)

    def _whole(self, results: pa.Table, some: tuple[int, ...]) -> pa.Table:
        """Return results with all keys, and the id of their grouping before firing columns."""
        count = len(results)
        id_ = pa.repeat(GroupingSets.id_of(some, len(self._all)), count)
        columns = {field.name: pa.nulls(count, field.type) for field in self._schema}
        columns |= dict(zip(results.column_names, results.columns, strict=True))
        own = [name for name in self._schema.names if name not in ("firing", "timing")]
        firing = [name for name in self._schema.names if name not in own]
        table = pa.table({name: columns[name] for name in own})
        table = table.append_column(GROUPING_ID, id_)
        for name in firing:
            table = table.append_column(name, columns[name])
        return table
