"""Changed texts that have a result here, and Flink's answers to them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import gpu_windows as gw
from gpu_windows.errors import GpuWindowsError
from tests.sql.corpus.compare import difference
from tests.sql.corpus.ddl import without_comments
from tests.sql.corpus.fuzz import change_text
from tests.sql.corpus.outcomes import statement_streams
from tests.sql.corpus.record import ask
from tests.sql.corpus.texts import Text, statements


@dataclass(frozen=True)
class Changed:
    """A changed text with its result.

    Parameters
    ----------
    text : Text
    result : pa.Table
    """

    text: Text
    result: Any


def run_changed(seeds: Iterable[int]) -> Iterator[Changed]:
    """Yield texts of seeds that have a result here, each text once."""
    texts = list(statements())
    seen = {_words(text.sql) for text in texts}
    streams: dict[str, dict[str, Any]] = {}
    for seed in seeds:
        text, sql = change_text(random.Random(seed), texts)
        if _words(sql) in seen or "\x00" in sql:
            continue
        seen.add(_words(sql))
        if text.name not in streams:
            streams[text.name] = statement_streams(text)
        try:
            result = gw.sql(sql, **streams[text.name]).result()
        except GpuWindowsError:
            continue
        name, differs = f"{text.name}#{seed}", text.differs.replace("ordered", "unordered")
        yield Changed(replace(text, name=name, sql=sql, differs=differs), result)


def differences(changed: Iterable[Changed]) -> Iterator[tuple[Text, str]]:
    """Yield texts to which Flink's answer is another, and how; one that it refuses is one, too."""
    changed = list(changed)
    answers = ask([each.text for each in changed])
    for each in changed:
        answer = answers[each.text.name]
        if "error" in answer:
            yield each.text, f"Flink refuses it: {answer['error']}"
            continue
        [flink] = answer.values()
        found = difference(each.result, flink, each.text.differs)
        if found is not None:
            yield each.text, found


def _words(sql: str) -> str:
    return " ".join(without_comments(sql).split()).rstrip(" ;").lower()
