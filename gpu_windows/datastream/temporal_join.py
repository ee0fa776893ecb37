"""The API of temporal joins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.datastream.pairs import PairsInTime
from gpu_windows.datastream.steps import R
from gpu_windows.datastream.two_inputs import Marked, MergedInputs, Prefixes, Selection
from gpu_windows.errors import ColumnTypeError, InvalidDurationError, QueryError
from gpu_windows.functions.join import JoinType, Pair
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.temporal_join import TemporalJoinSpec
from gpu_windows.functions.two_inputs import DELETED
from gpu_windows.planning.kinds.pairs import TemporalJoinQuery
from gpu_windows.rules import VERSIONED_TICKS
from gpu_windows.runners.outputs import Outputs
from gpu_windows.vocabulary.options import Duration, show_ticks, ticks


@dataclass(frozen=True)
class TemporalJoin(PairsInTime[R]):
    """A stream whose rows are joined with versions: right rows, each the next of its key.

    A left row is joined with the right row of its key that has the greatest time up to its own, and
    comes when the watermark reaches its time; of several versions of one time the last that arrived
    counts. No row is late: see docs/joins.md.

    Examples
    --------
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> sales = gw.stream(pa.table({"item": ["tea"] * 2, "count": [1, 2], "ts": [5, 15]}))
    >>> prices = gw.stream(
    ...     pa.table(
    ...         {"item": ["tea"] * 2, "price": [3.0, None], "gone": [False, True], "ts": [0, 10]}
    ...     )
    ... )
    >>> sales, prices = (rows.event_time("ts", in_order).key_by("item") for rows in (sales, prices))
    >>> priced = sales.temporal_join(prices, deleted="gone")
    >>> priced.select(["count"], ["price"], how="left")["right_price"].to_pylist()
    [3.0, None]
    """

    deleted: str | None = None
    valid_for_: int | None = None

    def __post_init__(self) -> None:
        if self.deleted is None:
            return
        if not isinstance(self.deleted, str):
            rule = "deleted names a column of the right side: true where the key has no version"
            raise QueryError(rule, value=type(self.deleted).__name__)
        source, name = self.both.right.source.bind_column(self.deleted, None)
        dtype = source.schema.field(name).type
        if not types.is_boolean(dtype):
            rule = "what says that a version is deleted is true or false"
            raise ColumnTypeError(rule, value=str(dtype), column=self.deleted)

    def valid_for(self, duration: Duration) -> Self:
        """Let a version expire after some event time though no newer one came.

        A left row that is as much later than the newest version, or more, has no version; one that
        has ended is kept no longer.

        Parameters
        ----------
        duration : str or datetime.timedelta
            Positive.

        Raises
        ------
        InvalidDurationError
            If it is not positive, or does not fit.

        Examples
        --------
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> sales = gw.stream(pa.table({"item": ["tea"] * 2, "ts": [1_000_000, 90_000_000]}))
        >>> prices = gw.stream(pa.table({"item": ["tea"], "price": [3.0], "ts": [0]}))
        >>> sales, prices = (
        ...     rows.event_time("ts", in_order).key_by("item") for rows in (sales, prices)
        ... )
        >>> fresh = sales.temporal_join(prices).valid_for("1 minute")
        >>> fresh.select(right=["price"], how="left")["right_price"].to_pylist()
        [3.0, None]
        """
        lives = ticks(duration)
        if not 0 < lives <= VERSIONED_TICKS[1]:
            rule = "a version is valid for a positive time that fits 62 bits"
            raise InvalidDurationError(rule, value=show_ticks(lives))
        return replace(self, valid_for_=lives)

    def _merge_inputs(
        self, left: Selection | Marked, right: Selection | Marked, prefixes: Prefixes
    ) -> MergedInputs:
        right_side = right if self.deleted is None else Marked(right, DELETED, self.deleted)
        merged = super()._merge_inputs(left, right_side, prefixes)
        return replace(merged, right=tuple(name for name in merged.right if name != DELETED))

    def _pair(
        self, merged: MergedInputs, how: JoinType, where: pc.Expression | None
    ) -> tuple[Pair, pa.Schema]:
        if how not in ("inner", "left"):
            raise QueryError("a temporal join is inner or left", value=f"how={how!r}")
        return super()._pair(merged, how, where)

    def _join_outputs(
        self,
        merged: MergedInputs,
        pair: Pair,
        output: pa.Schema,
        process: PairProcess | None = None,
    ) -> Outputs:
        deleted = None if self.deleted is None else DELETED
        join = TemporalJoinSpec(pair, output, deleted, self.valid_for_, process)
        return self._query_outputs(TemporalJoinQuery, merged, join)

    if TYPE_CHECKING:

        def with_outputs(self) -> TemporalJoin[Outputs]: ...  # noqa: D102 - `LastStep` has it
