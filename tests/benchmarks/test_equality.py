"""How the benchmarks compare results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks import equality
from benchmarks.contest import Window, Work
from benchmarks.data import START
from benchmarks.equality import RESULT_SCHEMA, ResultMismatchError, require_equal
from benchmarks.measure import check

MINUTE = 60_000_000
TUMBLING = Window.of("1 minute")
SLIDING = Window.of("60 minutes", "1 minute")


@pytest.fixture
def answer() -> pa.Table:
    random = np.random.default_rng(1)
    keys, starts = np.repeat(np.arange(5), 40), START + MINUTE * np.tile(np.arange(40), 5)
    time = RESULT_SCHEMA.field("window_start").type
    columns = [
        pa.array(keys),
        pa.array(starts, time),
        pa.array(starts + MINUTE, time),
        pa.array(random.normal(500, 100, keys.size)),
        pa.array(random.integers(1, 20, keys.size)),
        pa.array(random.normal(90, 5, keys.size)),
    ]
    return pa.table(columns, schema=RESULT_SCHEMA)


def changed(table: pa.Table, name: str, change: Callable[[Any], Any]) -> pa.Table:
    """Return the table with the value of its row 77 changed."""
    at, dtype = table.schema.get_field_index(name), table.schema.field(name).type
    numbers = table[name].cast(pa.int64() if pa.types.is_timestamp(dtype) else dtype)
    values = numbers.to_numpy().copy()
    values[77] = change(values[77])
    return table.set_column(at, table.schema.field(name), pa.array(values).cast(dtype))


ALTERATIONS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a row lost": lambda t: t.slice(1),
    "a row twice": lambda t: pa.concat_tables([t, t.slice(3, 1)]),
    "a row replaced": lambda t: pa.concat_tables([t.slice(1), t.slice(3, 1)]),
    "a sum off": lambda t: changed(t, "sum", lambda v: v * (1 + 1e-6)),
    "a count off": lambda t: changed(t, "count", lambda v: v + 1),
    "a maximum off": lambda t: changed(t, "max", lambda v: v + 1e-3),
    "a window moved": lambda t: changed(t, "window_start", lambda v: v + 1_000_000),
    "a window longer": lambda t: changed(t, "window_end", lambda v: v + 1),
    "a key off": lambda t: changed(t, "key", lambda v: (v + 1) % 5),
}


def test_order_and_last_bits_do_not_matter(answer: pa.Table) -> None:
    other = answer.take(pa.array(np.random.default_rng(2).permutation(len(answer))))
    other = changed(other, "sum", lambda v: v * (1 + 1e-12))
    require_equal(answer, other, ("a", "b"))
    require_equal(equality.digest(answer), equality.digest(other), ("a", "b"))


@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=ALTERATIONS)
@pytest.mark.parametrize("reduce", [equality.canonical, equality.digest])
def test_a_difference_is_found(
    answer: pa.Table, alter: Callable[[pa.Table], pa.Table], reduce: Callable[[pa.Table], pa.Table]
) -> None:
    with pytest.raises(ResultMismatchError, match=r"^a (has|and b disagree)"):
        require_equal(reduce(answer), reduce(alter(answer)), ("a", "b"))


def test_a_maximum_must_be_exact(answer: pa.Table) -> None:
    other = changed(answer, "max", lambda v: np.nextafter(v, np.inf))
    with pytest.raises(ResultMismatchError, match="1 rows differ in 'max', the first"):
        require_equal(answer, other, ("a", "b"))


def test_a_null_is_a_difference(answer: pa.Table) -> None:
    sums = pc.if_else(pc.greater(answer["count"], 5), answer["sum"], None)
    with pytest.raises(ResultMismatchError, match="nulls in column 'sum'"):
        require_equal(answer, answer.set_column(3, "sum", sums), ("a", "b"))


def test_check_names_who_differs_and_compares_equal_windows_only(answer: pa.Table) -> None:
    other = answer.slice(1)

    def work(table: pa.Table, window: Window) -> Work:
        return Work(lambda: 0.0, window, lambda: table)

    works = {"one": work(answer, TUMBLING), "two": work(other, SLIDING)}
    check(works, lambda _: None)
    with pytest.raises(ResultMismatchError, match="one has 200 rows, three 199"):
        check({**works, "three": work(other, TUMBLING)}, lambda _: None)
