"""Inputs that have changed places are told by names, sources and columns; nothing else is."""

from __future__ import annotations

import pytest

from gpu_windows.planning.input_facts import InputFacts, find_moved_inputs, merge_inputs


def inputs(*texts: str) -> list[InputFacts]:
    """Inputs as ``name:columns:source+source``; what is empty is unknown."""
    parts = [text.split(":") for text in texts]
    return [
        InputFacts(name or None, shape, tuple(filter(None, sources.split("+"))))
        for name, shape, sources in parts
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["a:x:1"], ["a:x:1"]),
        ([":x:1"], [":x:2"]),
        ([":x:1"], [":y:2"]),
        (["a:x:1", "b:x:2"], ["a:x:3", "b:x:4"]),
        (["a:x:1", "b:y:2"], ["a:y:3", "b:x:4"]),  # the names say that columns have changed
        ([":x:1", ":y:2"], [":y:1", ":x:2"]),  # the sources say so
        (["a:x:1", "b:x:2"], [":x:1", ":x:2"]),
        ([":x:1", ":x:2"], ["a:x:1", "b:x:2"]),
        ([":x:1", ":x:1"], [":x:1", ":x:1"]),
        ([":x:", ":x:"], [":x:", ":x:"]),
        ([":x:1", ":x:2"], [":x:3", ":x:2"]),
    ],
)
def test_what_may_change(before: list[str], after: list[str]) -> None:
    assert list(find_moved_inputs(inputs(*before), inputs(*after))) == []


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ([":x:1", ":x:2"], [":x:2", ":x:1"], "source 1 reads what source 2 read"),
        ([":x:1", ":x:2"], [":x:2", ":x:3"], "source 1 reads what source 2 read"),
        ([":x:1", ":x:2"], [":x:1", ":x:1"], "source 2 reads what source 1 read"),
        ([":x:1+2"], [":x:2+1"], "source 1 reads what source 2 read"),
        ([":x:1+2"], [":x:1"], "sources of Spark's were 2, are 1"),
        (["a:x:1", "b:x:2"], ["b:x:3", "a:x:4"], "input 1 was a, is b"),
        (["a:x:1", "b:x:2"], ["a:x:2", "b:x:1"], "source 1 reads what source 2 read"),
        (["a:x:1", ":x:2"], [":x:3", "a:x:4"], "input 2 is a, which was input 1"),
        ([":x:1", ":y:2"], [":y:3", ":x:4"], "input 1 has the columns that input 2 had"),
        ([":x:", ":y:"], [":y:", ":x:"], "input 1 has the columns that input 2 had"),
        ([":x:1", ":y:2", ":z:3"], [":y:4", ":x:5", ":z:3"], "input 1 has the columns"),
        (["a:x:1"], ["a:x:1", "b:x:2"], r"inputs were 1 (a), are 2 (a, b)"),
    ],
)
def test_what_may_not(before: list[str], after: list[str], text: str) -> None:
    assert text in "; ".join(find_moved_inputs(inputs(*before), inputs(*after)))


def test_what_an_earlier_start_knew_stays_known() -> None:
    found = merge_inputs(inputs("a:x:1", ":x:2"), inputs(":y:", "b:x:3"))
    assert list(found) == inputs("a:y:1", "b:x:3")


def test_facts_are_read_as_they_were_written() -> None:
    (facts,) = inputs("a:x:1+2")
    assert InputFacts.from_json(facts.as_json) == facts


def test_where_nothing_is_known_of_the_inputs_before_nothing_is_refused() -> None:
    now = (InputFacts("a", "k string", ("s",)), InputFacts("b", "k string", ("t",)))
    assert list(find_moved_inputs((), now)) == []
    assert merge_inputs((), now) == now
