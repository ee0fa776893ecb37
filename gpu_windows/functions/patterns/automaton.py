"""The states of a pattern, as Flink's compiler builds them.

Source: org.apache.flink.cep.nfa.compiler.NFACompiler, org.apache.flink.table.planner.plan.nodes
.exec.stream.StreamExecMatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_windows.functions.patterns.pattern import Pattern, Variable


@dataclass(frozen=True)
class State:
    """A state: it may take a row for its variable, or proceed to another state with the row.

    Parameters
    ----------
    variable : int
    take_to : int
        The state after it takes a row; the number of states means that the match is complete.
    proceed_to : int, optional
        The state that may take the row instead.
    take_unless, proceed_unless : frozenset of int
        Not if the row fits one of these variables, which are greedy loops before it.
    """

    variable: int
    take_to: int
    proceed_to: int | None = None
    take_unless: frozenset[int] = frozenset()
    proceed_unless: frozenset[int] = frozenset()


#: The complete match, while states are built from the last one on.
_FINAL = -1


def build_states(pattern: Pattern) -> tuple[State, ...]:
    """Build the states of a pattern; the first one is the start state."""
    made: list[State] = []
    sink = _FINAL
    for number, variable in reversed([*enumerate(pattern.variables)]):
        sink = _add(made, number, variable, sink)
    count = len(made)

    def renumber(index: int) -> int:
        return count if index == _FINAL else count - 1 - index

    return tuple(
        replace(
            each,
            take_to=renumber(each.take_to),
            proceed_to=None if each.proceed_to is None else renumber(each.proceed_to),
        )
        for each in reversed(made)
    )


def max_branches(states: Sequence[State]) -> int:
    """Return the maximum number of states that may take one row for one partial match."""
    lengths: dict[int, int] = {}
    for index in reversed(range(len(states))):
        after = states[index].proceed_to
        lengths[index] = 1 + (0 if after is None else lengths.get(after, 0))
    return max(lengths.values())


def _add(made: list[State], number: int, variable: Variable, sink: int) -> int:
    """Add the states of a variable before those of the next one; return the first of them."""
    first, after = max(variable.min_rows, 1), sink
    if variable.is_loop and variable.greedy and sink != _FINAL:
        made[sink] = _unless(made[sink], number)
    if variable.max_rows is None:
        made.append(State(number, take_to=len(made), proceed_to=sink))
        after = len(made) - 1
    for _ in range(0 if variable.max_rows is None else variable.max_rows - first):
        made.append(State(number, take_to=after, proceed_to=sink))
        after = len(made) - 1
    for _ in range(first - 1):
        made.append(State(number, take_to=after))
        after = len(made) - 1
    made.append(State(number, take_to=after, proceed_to=sink if variable.min_rows == 0 else None))
    return len(made) - 1


def _unless(state: State, variable: int) -> State:
    """Return a state that acts only on rows that do not fit a greedy loop before it."""
    return replace(
        state,
        take_unless=state.take_unless | {variable},
        proceed_unless=state.proceed_unless if state.proceed_to is None
        else state.proceed_unless | {variable},
    )  # fmt: skip
