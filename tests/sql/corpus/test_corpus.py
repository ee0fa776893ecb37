"""Flink SQL as people write it: nothing is answered wrongly, and nothing fails untyped."""

from __future__ import annotations

import pytest

from tests.lanes import quick
from tests.sql.corpus.fuzz import failure_of
from tests.sql.corpus.levels import DIFFERENT, MIN_RIGHT
from tests.sql.corpus.outcomes import INTERNAL, REFUSED, RIGHT, WRONG, outcome
from tests.sql.corpus.record import recorded
from tests.sql.corpus.texts import Text, scripts, statements

TEXTS: dict[str, list[Text]] = {}
for _text in (*statements(), *scripts()):
    TEXTS.setdefault(_text.kind, []).append(_text)


@pytest.mark.parametrize("kind", quick(sorted(TEXTS), "windows", "interval_join", "scripts"))
def test_texts_are_answered_as_by_flink_or_refused(kind: str) -> None:
    outcomes = [outcome(text) for text in TEXTS[kind]]
    wrong = {each.text.name: each.detail for each in outcomes if each.result in (WRONG, INTERNAL)}
    assert wrong.keys() == {name for name in DIFFERENT if name.startswith(f"{kind}/")}, wrong
    count = sum(each.result == RIGHT for each in outcomes)
    assert count >= MIN_RIGHT[kind], f"{count} are right, {MIN_RIGHT[kind]} were"


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_every_text_is_recorded_under_one_name(kind: str) -> None:
    names = [text.name for text in TEXTS[kind]]
    assert len(set(names)) == len(names)
    assert set(names) == recorded(kind).keys()
    assert 0 < MIN_RIGHT[kind] <= len(names)


def test_a_refused_statement_has_its_place() -> None:
    [text] = [each for each in TEXTS["stateless"] if each.name == "stateless/hint"]
    found = outcome(text)
    assert found.result in (RIGHT, REFUSED)
    assert found.result == RIGHT or "(line 1, position" in found.detail


@pytest.mark.parametrize("first", quick(range(0, 1_000, 50), 0))
def test_changed_texts_have_a_result_or_a_typed_error(first: int) -> None:
    failures = {seed: failure_of(seed) for seed in range(first, first + 50)}
    assert not {seed: each for seed, each in failures.items() if each is not None}
