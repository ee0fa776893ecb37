"""Patterns as they are read, and their automata."""

from __future__ import annotations

import pytest

from gpu_windows.errors import InvalidPatternError
from gpu_windows.functions.patterns.automaton import build_states, max_branches
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
        ("A B A", "names that differ"),
        ("A B a", "differ in more than case"),
        ("A B+", "greedy one"),
        ("A B{2,3}", "greedy one"),
        ("A*? B?", "at least one row"),
        ("A B* C* D", "must not be optional"),
        ("A B+ C? D", "must not be optional"),
        ("A?? B", "cannot be reluctant"),
        ("A{0,1}? B", "cannot be reluctant"),
        ("A{} B", "must begin with a number"),
        ("A{,2} B", "must begin with a number"),
        ("A{3,2} B", "not below the lower bound"),
        ("A{0} B", "must be positive"),
        ("A{0,0} B", "must be positive"),
        ("A{2000} B", "up to 1000"),
    ],
)
def test_what_is_no_pattern_of_flinks_is_refused(text: str, rule: str) -> None:
    with pytest.raises(InvalidPatternError, match=rule):
        Pattern.of(text)


def test_a_pattern_is_a_text() -> None:
    with pytest.raises(InvalidPatternError, match="must be a string"):
        Pattern.of(["A", "B"])  # type: ignore[arg-type]


def _shown(text: str) -> list[str]:
    """Return the states of a pattern: variable, where a taken row goes, where others go."""
    pattern = Pattern.of(text)
    names, states = pattern.names, build_states(pattern)

    def unless(some: frozenset[int]) -> str:
        return f" unless {', '.join(names[each] for each in sorted(some))}" if some else ""

    return [
        f"{names[s.variable]}->{s.take_to}{unless(s.take_unless)}"
        + ("" if s.proceed_to is None else f", ->{s.proceed_to}{unless(s.proceed_unless)}")
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
    assert max_branches(build_states(Pattern.of("A B C"))) == 1
    assert max_branches(build_states(Pattern.of("A B*? C*? D"))) == 3
    assert max_branches(build_states(Pattern.of("A{2,9}? B"))) == 2
