"""Patterns as they are read, and their automata."""

from __future__ import annotations

import pytest

from gpu_windows.errors import InvalidPatternError
from gpu_windows.functions.patterns.automaton import branches_of, states_of
from gpu_windows.functions.patterns.pattern import Pattern


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A", "A"),
        (" A  B ", "A B"),
        ("A B+ C", "A B+ C"),
        ("A* ?B", "A*? B"),
        ("A{2}B{ 2 , }C{1,3} ? D", "A{2} B{2,} C{1,3}? D"),
        ("up down_2? Z", "up down_2? Z"),
        ("A{0,} B{1,}? C{1,1}", "A* B+? C"),
        ("A{1}? B{2}? C", "A B{2} C"),
    ],
)
def test_a_pattern_is_read_and_shown(text: str, shown: str) -> None:
    assert Pattern.of(text).describe() == shown
    assert Pattern.of(shown) == Pattern.of(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "1 to 60 variables"),
        (" ", "1 to 60 variables"),
        (" ".join(f"V{i}" for i in range(61)), "1 to 60 variables"),
        ("(A B)+ C", "groups"),
        ("A | B", "groups"),
        ("A {- B -} C", "groups"),
        ("PERMUTE(A, B)", "groups"),
        ("A B-C", "groups"),
        ("1A", "groups"),
        ("A++ B", "groups"),
        ("A B A", "once"),
        ("A B a", "differ in more than case"),
        ("A B+", "greedy one"),
        ("A B{2,3}", "greedy one"),
        ("A*? B?", "at least one row"),
        ("A B* C* D", "must be there"),
        ("A B+ C? D", "must be there"),
        ("A?? B", "not reluctant"),
        ("A{0,1}? B", "not reluctant"),
        ("A{} B", "begins with a number"),
        ("A{,2} B", "begins with a number"),
        ("A{3,2} B", "not less"),
        ("A{0} B", "greater than 0"),
        ("A{0,0} B", "greater than 0"),
        ("A{2000} B", "up to 1000"),
    ],
)
def test_what_is_no_pattern_of_flinks_is_refused(text: str, rule: str) -> None:
    with pytest.raises(InvalidPatternError, match=rule):
        Pattern.of(text)


def test_a_pattern_is_a_text() -> None:
    with pytest.raises(InvalidPatternError, match="is a text"):
        Pattern.of(["A", "B"])  # type: ignore[arg-type]


def _shown(text: str) -> list[str]:
    """Return the states of a pattern: variable, where a taken row goes, where others go."""
    pattern = Pattern.of(text)
    names, states = pattern.names, states_of(pattern)

    def unless(some: frozenset[int]) -> str:
        return f" unless {', '.join(names[each] for each in sorted(some))}" if some else ""

    return [
        f"{names[s.variable]}->{s.takes_to}{unless(s.takes_unless)}"
        + ("" if s.hands_to is None else f", ->{s.hands_to}{unless(s.hands_unless)}")
        for s in states
    ]


def test_the_states_are_those_of_flinks_compiler() -> None:
    assert _shown("A B C") == ["A->1", "B->2", "C->3"]
    assert _shown("A B+ C") == ["A->1", "B->2", "B->2, ->3", "C->4 unless B"]
    assert _shown("A B+? C") == ["A->1", "B->2", "B->2, ->3", "C->4"]
    assert _shown("A B* C") == ["A->1", "B->2, ->3", "B->2, ->3", "C->4 unless B"]
    assert _shown("A B? C") == ["A->1", "B->2, ->2", "C->3"]
    assert _shown("A B{3} C") == ["A->1", "B->2", "B->3", "B->4", "C->5"]
    assert _shown("A B{2,3} C") == ["A->1", "B->2", "B->3", "B->4, ->4", "C->5 unless B"]
    assert _shown("A B{2,}? C") == ["A->1", "B->2", "B->3", "B->3, ->4", "C->5"]
    assert _shown("A B{0,2} C") == ["A->1", "B->2, ->3", "B->3, ->3", "C->4 unless B"]
    assert _shown("A C*?") == ["A->1", "C->2, ->3", "C->2, ->3"]


def test_how_many_states_may_take_a_row() -> None:
    assert branches_of(states_of(Pattern.of("A B C"))) == 1
    assert branches_of(states_of(Pattern.of("A B*? C*? D"))) == 3
    assert branches_of(states_of(Pattern.of("A{2,9}? B"))) == 2
