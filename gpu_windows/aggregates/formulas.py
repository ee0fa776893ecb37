"""Formulas from partials to results, written once for all evaluators.

Values are NumPy arrays in the operators and columns in Spark: both have ``+ - * / >``. An
`Evaluator` covers what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from pyarrow import types

from gpu_windows.aggregates.definitions import BoundAggregate, Lower
from gpu_windows.aggregates.partials import Lift

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")
#: The values of one partial of all windows: one or more arrays, or columns.
State = Sequence[Any]


class Evaluator(Protocol[Result_co]):
    """Evaluates formulas. ``some`` is true where there is a result; elsewhere it is null."""

    def at_least_one(self, counts: Any) -> Any:
        """Return counts to divide by."""

    def result(self, bound: BoundAggregate, values: Any, some: Any | None) -> Result_co:
        """Return a result column; without ``some`` no result is null."""

    def exact_sum(self, bound: BoundAggregate, high: Any, low: Any, some: Any) -> Result_co:
        """Return ``high * 2**32 + low`` as a result column.

        Raises `ArithmeticOverflowError` for a sum that does not fit the result's type.
        """

    def exact_ratio(
        self, bound: BoundAggregate, high: Any, low: Any, counts: Any, some: Any
    ) -> Result_co:
        """Return ``(high * 2**32 + low) / counts`` as a result column; counts are at least 1."""


def lower(bound: BoundAggregate, states: Sequence[State], by: Evaluator[Result]) -> Result:
    """Return the result column of an aggregate over every window.

    Parameters
    ----------
    bound : BoundAggregate
        Its ``definition.lower`` must be in `FORMULAS`.
    states : sequence of sequence
        The values of each of ``bound.partials``.
    by : Evaluator
    """
    found: Result = FORMULAS[bound.definition.lower](bound, states, by)
    return found


def _count(bound: BoundAggregate, states: Sequence[State], by: Evaluator[Result]) -> Result:
    return by.result(bound, states[0][0], None)


def _rank(bound: BoundAggregate, states: Sequence[State], by: Evaluator[Result]) -> Result:
    return by.result(bound, states[0][0] + 1, None)


def _value(bound: BoundAggregate, states: Sequence[State], by: Evaluator[Result]) -> Result:
    *parts, (counts,) = states
    if bound.partials[0].lift is Lift.HIGH:
        return by.exact_sum(bound, parts[0][0], parts[1][0], counts > 0)
    values = parts[0][0]
    if types.is_floating(bound.result_type):
        values = values + 0.0  # one zero
    return by.result(bound, values, counts > 0)


def _ratio(bound: BoundAggregate, states: Sequence[State], by: Evaluator[Result]) -> Result:
    *parts, (counts,) = states
    n, some = by.at_least_one(counts), counts > 0
    if len(parts) == 2:
        return by.exact_ratio(bound, parts[0][0], parts[1][0], n, some)
    return by.result(bound, parts[0][0] / n, some)


#: The formulas by way to lower.
FORMULAS: dict[Lower, Callable[[BoundAggregate, Sequence[State], Evaluator[Any]], Any]] = {
    Lower.COUNT: _count,
    Lower.RANK: _rank,
    Lower.VALUE: _value,
    Lower.RATIO: _ratio,
}
