"""Messages cut into rows of a shuffle: whole again whatever the shuffle does with their order."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.errors import StateCorruptedError
from tests.cost import cpu_seconds
from tests.examples import examples

fragments = pytest.importorskip("gpu_windows.spark_glue.tasks.fragments")
Cutter, join_fragments = fragments.Cutter, fragments.join_fragments

#: What is sent: the shard of a message, and its bytes.
SENT = st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=40)), max_size=12)


def cut(sent: list[tuple[int, bytes]], most: int, sender: int = 0) -> pa.Table:
    cutter = Cutter(most, sender)
    calls = (sent[:5], sent[5:])
    batches = [cutter.cut([s for s, _ in call], [m for _, m in call]) for call in calls]
    return pa.Table.from_batches(batches)


def joined(rows: pa.Table, size: int) -> list[tuple[int, bytes]]:
    batches = rows.to_batches(max_chunksize=size)
    return [(shard, message.to_pybytes()) for shard, message in join_fragments(batches)]


@examples(200)
@given(
    st.lists(SENT, min_size=1, max_size=3),
    st.integers(1, 50),
    st.integers(1, 9),
    st.sampled_from(["as sent", "sorted", "shuffled", "large"]),
    st.randoms(use_true_random=False),
)
def test_messages_of_all_senders_arrive(
    tasks: list[list[tuple[int, bytes]]], most: int, size: int, order: str, by: random.Random
) -> None:
    rows = pa.concat_tables(cut(sent, most, sender) for sender, sent in enumerate(tasks))
    if order == "sorted":
        rows = rows.sort_by([("__shard", "ascending"), ("__number", "ascending")])
    elif order == "shuffled":
        places = [*range(len(rows))]
        by.shuffle(places)
        rows = rows.take(pa.array(places, pa.int64()))
    elif order == "large":
        rows = rows.set_column(2, "__blob", rows["__blob"].cast(pa.large_binary()))
    wanted = [each for sent in tasks for each in sent]
    assert sorted(joined(rows, size)) == sorted(wanted)
    if order != "shuffled":  # the messages of a sender to a shard are in order
        for shard in range(4):
            found = [message for of, message in joined(rows, size) if of == shard]
            assert found == [message for of, message in wanted if of == shard]


@pytest.mark.parametrize("lost", [0, 1, 4, 5])
def test_a_lost_fragment_is_an_error(lost: int) -> None:
    rows = cut([(7, b"x" * 60)], 10)
    rest = pa.concat_tables([rows.slice(0, lost), rows.slice(lost + 1)])
    with pytest.raises(StateCorruptedError, match=r"all fragments of a message, got .* shard 7"):
        joined(rest, 3)


def test_fragments_that_come_twice_do_not_make_a_message_twice() -> None:
    rows = cut([(7, b"x" * 60)], 10)
    with pytest.raises(StateCorruptedError):
        joined(pa.concat_tables([rows, rows.slice(2, 2)]), 100)


def test_bytes_that_are_together_are_not_copied_and_others_are_aligned() -> None:
    batch = Cutter(16).cut([1, 1, 2], [b"a" * 64, b"b" * 3, b"c" * 64])
    memory = batch.column(2).buffers()[2]
    first, short, last = (message for _, message in join_fragments([batch]))
    assert first.address == memory.address
    assert (short.to_pybytes(), last.to_pybytes()) == (b"bbb", b"c" * 64)
    assert last.address % 8 == 0


def test_a_slice_of_a_batch_is_read_as_it_is() -> None:
    rows = cut([(1, b"first" * 9), (2, b"second" * 9)], 10)
    whole = rows.combine_chunks().to_batches()[0]
    count = int(np.sum(whole.column(0).to_numpy() == 1))
    ((shard, message),) = join_fragments([whole.slice(count)])
    assert (shard, message.to_pybytes()) == (2, b"second" * 9)


def test_a_message_costs_little_more_in_many_fragments() -> None:
    """A message is read as fast in 8,000 fragments as in 8, but for NumPy's work on numbers."""
    message = bytes(1 << 23)

    def cost(most: int) -> float:
        batch = Cutter(most).cut([1], [message])
        return cpu_seconds(lambda: list(join_fragments([batch])), 20)

    assert cost(1 << 10) < 40 * cost(1 << 20)
