"""Joins of rows: pairs, as columns or through a function over each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.datastream.schemas import Schema, read_schema
from gpu_windows.datastream.steps import LastStep, R
from gpu_windows.datastream.two_inputs import (
    PREFIXES,
    Marked,
    MergedInputs,
    Prefixes,
    Selection,
    check_result_names,
    prefix_names,
)
from gpu_windows.errors import QueryError
from gpu_windows.functions.declarations import check_function
from gpu_windows.functions.join import (
    LEFT_ALONE,
    JoinType,
    Pair,
    check_condition,
    join_type,
    joined_schema,
)
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.runners.outputs import Outputs
from gpu_windows.vocabulary.rich_functions import RichFunction


class Pairs(NamedTuple):
    """Pairs of a join.

    Parameters
    ----------
    pair : Pair
        What they are.
    output : pyarrow.Schema
        Their columns.
    process : PairProcess, optional
        The user's function that they go to.
    """

    pair: Pair
    output: pa.Schema
    process: PairProcess | None = None


@dataclass(frozen=True, kw_only=True)
class PairsRows(LastStep[R], ABC):
    """Joins of rows, whatever makes two of them a pair."""

    #: What a function over its pairs is.
    _process: ClassVar[type[PairProcess]]
    null_safe_: bool = False

    def null_safe(self) -> Self:
        """Match keys with nulls too, null with null (SQL: IS NOT DISTINCT FROM).

        Examples
        --------
        >>> orders = gw.stream(pa.table({"agent": ["ann", None], "order": [1, 2]})).key_by("agent")
        >>> calls = gw.stream(pa.table({"agent": ["ann", None], "call": [8, 9]})).key_by("agent")
        >>> pairs = orders.join(calls).window(gw.GlobalWindows.create_with_end_of_stream_trigger())
        >>> pairs.null_safe().select(["order"], ["call"])["right_call"].to_pylist()
        [9, 8]
        """
        return replace(self, null_safe_=True)

    def select(
        self,
        left: Selection = (),
        right: Selection = (),
        *,
        how: JoinType | str = "inner",
        where: pc.Expression | None = None,
        prefixes: Prefixes = PREFIXES,
    ) -> R:
        """Return the pairs.

        Parameters
        ----------
        left, right : sequence of str or Column, or mapping
            Columns of each side, which get the side's prefix; a mapping gives their names in the
            result.
        how : {"inner", "left", "right", "full", "semi", "anti"}
            ``left``, ``right`` and ``full`` give rows of a side without a partner too, with nulls;
            ``semi`` and ``anti`` the left rows with, or without one. On a stream a row without a
            partner comes when the watermark says that none can come. Spark's names are taken,
            too: ``outer``, ``left_outer``, ``leftsemi`` and so on.
        where : pyarrow.compute.Expression, optional
            What must hold for a pair besides, over the selection columns by their names in the
            result: ``pc.field("left_price") < pc.field("right_limit")``.
        prefixes : (str, str)
            What comes before the names of left and of right columns that are not renamed.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
            The keys (by the left side's names), the window's bounds if there are windows, and the
            selection columns. A key with a null has no partner, unless keys are `null_safe`.

        Raises
        ------
        QueryError
            If a column is not there, names clash, or the condition is none.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"item": ["tea", "oil"], "count": [1, 3]})).key_by("item")
        >>> prices = gw.stream(pa.table({"item": ["tea"], "price": [2.5]})).key_by("item")
        >>> pairs = sales.join(prices).window(gw.GlobalWindows.create_with_end_of_stream_trigger())
        >>> rows = pairs.select(["count"], ["price"], how="left", prefixes=("", "list_"))
        >>> rows.select(["count", "list_price"]).to_pylist()
        [{'count': 1, 'list_price': 2.5}, {'count': 3, 'list_price': None}]
        """
        how = join_type(how)
        check_result_names(left, right)
        merged = self._merge_inputs(left, right, prefixes)
        pairs = self._pair(merged, how, where)
        if not pairs.output.names:
            alone = how in LEFT_ALONE
            rule = f"choose a column of {'the left side' if alone else 'a side'}: select(['name'])"
            raise QueryError(rule)
        outputs = self._join_outputs(merged, pairs)
        if not outputs.plan.query.has_windows:
            outputs.in_time = partial(self._in_time, left, right, prefixes, how, where)
        return self._end(outputs)

    def _in_time(
        self,
        left: Selection,
        right: Selection,
        prefixes: Prefixes,
        how: JoinType,
        where: pc.Expression | None,
    ) -> Outputs:
        """Return the outputs of `select`, with the times of both rows of a pair."""
        marked, merged = self._merge_marked(left, right, prefixes)
        return marked._join_outputs(merged, marked._pair(merged, how, where))

    def process(
        self,
        function: RichFunction,
        left: Selection = (),
        right: Selection = (),
        *,
        output: Schema,
        how: JoinType | str = "inner",
        where: pc.Expression | None = None,
    ) -> R:
        """Give every pair to a function of yours, in Python: it returns any number of rows.

        Parameters
        ----------
        function : ProcessJoinFunction or FlatJoinFunction
            The former for interval joins, the latter for window joins.
        left, right : sequence of str or Column, or mapping
            What it sees of each side, by the columns' own names or those of the mapping.
        output : pyarrow.Schema, str or StructType
            The columns that it returns, after the keys and, if there are windows, their bounds.
        how, where
            See `select`. A row without a partner comes with None. In a condition the names that the
            function sees have the prefixes ``left_`` and ``right_``.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
        """
        how, schema = join_type(how), read_schema(output)
        check_function(function, self._process.kind)
        marked, merged = self._merge_marked(*prefix_names(left, right, PREFIXES), PREFIXES)
        seen = (names[:-1] for names in merged.names_of_sides(PREFIXES))
        pairs = self._pair(merged, how, where)
        pairs = pairs._replace(process=self._process(function, schema, *seen))
        return self._end(marked._join_outputs(merged, pairs))

    def _merge_marked(
        self, left: Selection, right: Selection, prefixes: Prefixes
    ) -> tuple[Self, MergedInputs]:
        """Return both inputs as one, with `MARKS`: columns of each side that are null in no row."""
        marked, *columns = self._with_marks()
        left_side, right_side = (
            Marked(*side) for side in zip((left, right), MARKS, columns, strict=True)
        )
        return marked, marked._merge_inputs(left_side, right_side, prefixes)

    def _pair(self, merged: MergedInputs, how: JoinType, where: pc.Expression | None) -> Pairs:
        """Return what pairs are, and their columns."""
        schema = merged.source.schema
        pair = Pair(merged.left, merged.right, how, where, self.null_safe_)
        check_condition(where, joined_schema(schema, pair.left, pair.right, "inner"))
        return Pairs(pair, joined_schema(schema, pair.left, pair.right, how))

    @abstractmethod
    def _with_marks(self) -> tuple[Self, str, str]:
        """Return this with a column of each side that is null in no row, and their names."""

    @abstractmethod
    def _merge_inputs(
        self, left: Selection | Marked, right: Selection | Marked, prefixes: Prefixes
    ) -> MergedInputs:
        """Return both inputs as one."""

    @abstractmethod
    def _join_outputs(self, merged: MergedInputs, pairs: Pairs) -> Outputs:
        """Return the outputs of a join."""
