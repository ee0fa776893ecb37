"""The states of a pattern, as Flink's compiler makes them.

Source: org.apache.flink.cep.nfa.compiler.NFACompiler, org.apache.flink.table.planner.plan.nodes
.exec.stream.StreamExecMatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_windows.functions.patterns.pattern import Pattern, Variable


@dataclass(frozen=True)
class State:
    """A state: it may take a row for its variable, or hand it on to another state.

    Parameters
    ----------
    variable : int
    takes_to : int
        The state after it has taken a row; as many as there are states: the match is complete.
    hands_to : int, optional
        The state that may take a row in its place.
    takes_unless, hands_unless : frozenset of int
        Not if the row may be taken for one of these variables, whose greedy loops come before.
    """

    variable: int
    takes_to: int
    hands_to: int | None = None
    takes_unless: frozenset[int] = frozenset()
    hands_unless: frozenset[int] = frozenset()


#: The complete match, while states are made from the last one on.
_FINAL = -1


def states_of(pattern: Pattern) -> tuple[State, ...]:
    """Return the states of a pattern; the first one is that of no row."""
    made: list[State] = []
    sink = _FINAL
    for number, variable in reversed([*enumerate(pattern.variables)]):
        sink = _add(made, number, variable, sink)
    count = len(made)

    def renumbered(place: int) -> int:
        return count if place == _FINAL else count - 1 - place

    return tuple(
        replace(
            each,
            takes_to=renumbered(each.takes_to),
            hands_to=None if each.hands_to is None else renumbered(each.hands_to),
        )
        for each in reversed(made)
    )


def branches_of(states: Sequence[State]) -> int:
    """Return how many states may take a row for one partial match, at most."""
    lengths: dict[int, int] = {}
    for place in reversed(range(len(states))):
        after = states[place].hands_to
        lengths[place] = 1 + (0 if after is None else lengths.get(after, 0))
    return max(lengths.values())


def _add(made: list[State], number: int, variable: Variable, sink: int) -> int:
    """Add the states of a variable before those of the next one; return the first of them."""
    first, after = max(variable.least, 1), sink
    if variable.is_loop and variable.greedy and sink != _FINAL:
        made[sink] = _unless(made[sink], number)
    if variable.most is None:
        made.append(State(number, takes_to=len(made), hands_to=sink))
        after = len(made) - 1
    for _ in range(0 if variable.most is None else variable.most - first):
        made.append(State(number, takes_to=after, hands_to=sink))
        after = len(made) - 1
    for _ in range(first - 1):
        made.append(State(number, takes_to=after))
        after = len(made) - 1
    made.append(State(number, takes_to=after, hands_to=sink if variable.least == 0 else None))
    return len(made) - 1


def _unless(state: State, variable: int) -> State:
    """Return a state that a row reaches only if it is not for a loop before it."""
    return replace(
        state,
        takes_unless=state.takes_unless | {variable},
        hands_unless=state.hands_unless if state.hands_to is None
        else state.hands_unless | {variable},
    )  # fmt: skip
