"""From partials to results: formulas that are written once, for whoever evaluates them.

Values are NumPy arrays in the operators and columns in Spark: both know ``+ - * / >``. What differs
between the two is an `Evaluator`.
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
    """Who evaluates formulas. ``some`` says where there is a result; elsewhere it is null."""

    def at_least_one(self, counts: Any) -> Any:
        """Return counts to divide by."""

    def result(self, bound: BoundAggregate, values: Any, some: Any | None) -> Result_co:
        """Return a result column; ``some`` None: everywhere."""

    def exact_sum(self, bound: BoundAggregate, high: Any, low: Any, some: Any) -> Result_co:
        """Return ``high * 2**32 + low`` as a result column.

        A sum that does not fit the result's type is an error: see `gpu_windows.errors`.
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
        Whose ``definition.lower`` is one of `FORMULAS`.
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


#: The formula of each way to lower that is one.
FORMULAS: dict[Lower, Callable[[BoundAggregate, Sequence[State], Evaluator[Any]], Any]] = {
    Lower.COUNT: _count,
    Lower.RANK: _rank,
    Lower.VALUE: _value,
    Lower.RATIO: _ratio,
}
