"""What checkpoints hold is what is known of the rows that went in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import checkpoints, errors
from gpu_windows.checkpointing import object_files
from gpu_windows.checkpoints import Holding, open_files, summary
from gpu_windows.operators.state import manifest, state_file_writer
from gpu_windows.operators.state.log import StateLog
from tests.checkpoints import queries
from tests.checkpoints.checkpoint_writer import CheckpointWriter, plan_stream, to_rows
from tests.lanes import quick
from tests.operators.joins.interval_joins import batch_of, in_time
from tests.operators.joins.rows import Row, keyed, table
from tests.spark_glue.stream_runs import ASSIGNERS, SECOND, batches, outputs_of, windowed

GAP = 4 * SECOND
#: Of a sliding window: its size and its slide.
SLIDING = {
    "sliding": (60 * SECOND, 15 * SECOND),
    "fine": (60 * SECOND, 2 * SECOND),
    "evictor": (60 * SECOND, 30 * SECOND),
}

#: A row in a window: its key, and the window's start and end.
Pane = tuple[int, int, int]
#: The path of the checkpoint of a query, by its name.
Paths = Callable[[str], str]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Return the checkpoint of a query, by name, of all rows of `batches`: each is run once."""
    folder = tmp_path_factory.mktemp("state")

    @cache
    def of(name: str) -> str:
        tables = batches()
        made = plan_stream(outputs_of(name, tables[0]))
        writer = CheckpointWriter(folder / name, made)
        for rows, closed in zip(tables, list_closing_times(tables)[1:], strict=True):
            writer.micro_batch(to_rows(made, rows), watermark=closed - 1)
        return writer.path

    return of


def make_checkpoint(folder: Path) -> CheckpointWriter:
    """Return the new checkpoint of a query that counts rows in 2 shards."""
    outputs = windowed(batches(1)[0], ASSIGNERS["tumbling"]).options(shards=2)
    return CheckpointWriter(folder, plan_stream(outputs.with_outputs().aggregate(n=gw.count())))


def list_closing_times(tables: list[pa.Table]) -> list[int]:
    """Return up to where windows are closed before every micro-batch, and after the last one."""
    latest, found = 0, [0]
    for rows in tables:
        latest = max(latest, *(at for at in times(rows) if at is not None))
        found.append(latest - 5 * SECOND)
    return found


def times(rows: pa.Table) -> list[int | None]:
    found: list[int | None] = rows["ts"].cast(pa.int64()).to_pylist()
    return found


def panes(name: str, tables: list[pa.Table]) -> list[tuple[int, Pane]]:
    """Return the rows of all windows that are open in the end, each with its number."""
    size, slide = SLIDING[name]
    marks = list_closing_times(tables)
    found: list[tuple[int, Pane]] = []
    for batch, closed in zip(tables, marks, strict=False):
        rows = zip(batch["seq"].to_pylist(), batch["k"].to_pylist(), times(batch), strict=True)
        for row, key, at in rows:
            if at is None:
                continue
            last = at - at % slide
            ends = range(last + slide, last + size + 1, slide)
            found += [(row, (key, end - size, end)) for end in ends if end > closed]
    return [pane for pane in found if pane[1][2] > marks[-1]]


def open_sessions(tables: list[pa.Table]) -> list[list[int]]:
    """Return the times of the rows of every session that is open in the end."""
    marks = list_closing_times(tables)
    by_key: dict[int, list[int]] = {}
    for rows, closed in zip(tables, marks, strict=False):
        for key, at in zip(rows["k"].to_pylist(), times(rows), strict=True):
            if at is not None and at + GAP > closed:
                by_key.setdefault(key, []).append(at)
    found: list[list[int]] = []
    for in_time_rows in by_key.values():
        session: list[int] = []
        for at in sorted(in_time_rows):
            if session and at > session[-1] + GAP:
                found.append(session)
                session = []
            session.append(at)
        found.append(session)
    return [session for session in found if session[-1] + GAP > marks[-1]]


def held(holdings: tuple[Holding, ...], table: str) -> Holding:
    (found,) = (each for each in holdings if each.table == table)
    return found


def files_in(folder: str) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


# ---- tables of state


@pytest.mark.parametrize("name", quick(["sliding", "fine"], "fine"))
def test_slices(checkpoint: Paths, name: str) -> None:
    state = gw.read_state(checkpoint(name))
    tables, slide = batches(), SLIDING[name][1]
    # a slice is there as long as the last window that it is in
    last = dict(panes(name, tables))
    slices = {(key, start) for key, start, _ in last.values()}
    found = held(state.tables, "slices")
    assert found.counts.keys() == {"rows"}  # a key and a slice may have an entry in each run
    assert len(slices) <= found.counts["rows"] <= len(batches()) * len(slices)
    assert found.keys is None
    starts = {start for _, start in slices}
    assert (found.start, found.end) == (min(starts), max(starts) + slide)
    assert state.watermark == list_closing_times(tables)[-1] - 1
    assert (state.batch, state.next_call, state.stages) == (len(tables) - 1, None, ())
    assert state.version == manifest.VERSION
    assert state.query["window"] == f"sliding 1 min every {slide // SECOND} s, event time"
    assert (state.query["shards"], state.query["strategy"]) == ("5", "slices")
    assert state.query["results"].startswith("k int64, window_start int64, window_end int64, n ")


def test_shards_are_parts_of_the_whole(checkpoint: Paths) -> None:
    state = gw.read_state(checkpoint("sliding"))
    assert [shard.shard for shard in state.shards] == [*range(5)]
    for whole in state.tables:
        of_shards = [each for shard in state.shards for each in shard.tables]
        some = [each for each in of_shards if each.table == whole.table]
        assert len(some) == whole.shards
        assert sum(each.size for each in some) == whole.size
        for name, count in whole.counts.items():
            assert sum(each.counts[name] for each in some) == count
        assert sum(each.runs for each in some) == whole.runs
        assert sum(each.keys or 0 for each in some) == (whole.keys or 0)


@pytest.mark.thorough
def test_buffered_rows(checkpoint: Paths) -> None:
    """What a micro-batch brought to a shard is kept until none of it is buffered."""
    state = gw.read_state(checkpoint("evictor"))
    slide = SLIDING["evictor"][1]
    last = dict(panes("evictor", batches()))  # the last window of a row begins with its slice
    starts = {start for _, start, _ in last.values()}
    found = held(state.tables, "buffered rows")
    every = sum(at is not None for rows in batches() for at in times(rows))
    assert len(last) <= found.counts["rows"] < every
    assert found.start is not None
    assert found.start <= min(starts)
    assert found.end == max(starts) + slide


@pytest.mark.thorough
def test_sessions(checkpoint: Paths) -> None:
    state = gw.read_state(checkpoint("sessions"))
    known = open_sessions(batches())
    found = held(state.tables, "windows")
    assert found.counts == {"windows": len(known), "rows": sum(map(len, known))}
    assert found.keys is not None
    assert 0 < found.keys <= len(known)


@pytest.mark.parametrize(
    ("how", "kinds"),
    [
        ("full", {"left": 3, "right": 2, "left at end": 2, "right at end": 1}),
        ("inner", {"left": 3, "right": 2}),
    ],
)
def test_joins(tmp_path: Path, how: str, kinds: dict[str, int]) -> None:
    """The two rows of key a meet: of them, no end has to be known for a full join."""
    rows: list[tuple[bool, Row]] = [
        (True, ("a", 10, 1)), (False, ("a", 8, 2)), (True, ("b", 20, 3)), (True, ("c", 22, 4)),
        (False, ("c", 90, 5)),
    ]  # fmt: skip
    made = plan_stream(in_time(table([]), table([]), (-5, 60), how))
    writer = CheckpointWriter(tmp_path, made)
    writer.micro_batch(batch_of(rows, made), watermark=12)
    state = gw.read_state(tmp_path)
    assert {
        each.table: each.counts["rows"] for each in state.tables if "rows" in each.counts
    } == kinds
    sides = [each for each in state.tables if each.table in ("left", "right")]
    assert min(each.start for each in sides if each.start is not None) == 8
    assert max(each.end for each in sides if each.end is not None) == 91


def test_first_rows_of_keys(tmp_path: Path) -> None:
    rows = table([("a", 1, 1), ("a", 2, 5), ("a", 3, 3), ("b", 4, 4)])
    made = plan_stream(keyed(rows).with_outputs().top(2, "v"))
    writer = CheckpointWriter(tmp_path, made)
    writer.micro_batch(to_rows(made, rows), watermark=None)
    state = gw.read_state(tmp_path)
    (found,) = state.tables
    assert (found.keys, found.counts) == (2, {"rows": 3})  # two of a, one of b
    assert state.watermark is None


# ---- commits


def test_a_query_without_a_micro_batch(tmp_path: Path) -> None:
    writer = make_checkpoint(tmp_path)
    begun = gw.read_state(tmp_path)
    assert begun == gw.typing.CheckpointState(str(tmp_path), begun.query)
    assert begun.query["window"] == "tumbling 20 s, event time"
    writer.micro_batch(to_rows(writer.plans[""], batches(1)[0]), watermark=None)
    later = gw.read_state(tmp_path)
    assert (later.batch, later.watermark) == (0, None)
    assert later.query == begun.query
    assert held(later.tables, "slices").shards == 2


def test_the_last_micro_batch_is_read_and_nothing_is_changed(tmp_path: Path) -> None:
    writer, tables = make_checkpoint(tmp_path), batches(3, 50)
    for number, rows in enumerate(tables):
        writer.micro_batch(to_rows(writer.plans[""], rows), watermark=5, due_ms=1_000 + number)
        before = files_in(writer.path)
        state = gw.read_state(tmp_path)
        assert files_in(writer.path) == before
        assert held(state.tables, "slices").runs == 2 * (number + 1)
        assert (state.batch, state.watermark) == (number, 5)
        assert state.next_call == (1_000 + number) * 1_000


def test_stages(tmp_path: Path) -> None:
    tables = batches(1)
    first, own = (plan_stream(outputs_of(name, tables[0])) for name in ("fine", "sliding"))
    writer = CheckpointWriter(tmp_path, own, minutes=first, hours=own)
    writer.micro_batch(to_rows(first, tables[0]), watermark=7, stage="minutes")
    keyed_times = zip(tables[0]["k"].to_pylist(), times(tables[0]), strict=True)
    known = {(key, at // (2 * SECOND)) for key, at in keyed_times if at is not None}
    of_stage = gw.read_state(tmp_path, stage="minutes")
    assert of_stage.query["window"] == "sliding 1 min every 2 s, event time"
    assert held(of_stage.tables, "slices").counts["rows"] == len(known)
    assert (of_stage.watermark, of_stage.batch) == (7, 0)
    alone = CheckpointWriter(tmp_path / "alone", first)
    assert of_stage.query == gw.read_state(alone.path).query
    for stage in (None, "hours"):
        other = gw.read_state(tmp_path, stage=stage)
        assert other.query["window"] == "sliding 1 min every 15 s, event time"
        assert (other.tables, other.watermark, other.batch) == ((), None, 0)
        assert other.stages == of_stage.stages == ("minutes", "hours")
        assert not [part for part in other.query if ": " in part]
    for stage in ("days", ""):
        with pytest.raises(errors.CheckpointError, match=f"are minutes, hours, got {stage}$"):
            gw.read_state(tmp_path, stage=stage)
    with pytest.raises(errors.CheckpointError, match="has no earlier stages, got minutes"):
        gw.read_state(alone.path, stage="minutes")


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a folder"
    make_checkpoint(folder)
    wanted = gw.read_state(folder)
    assert wanted.checkpoint == str(folder)
    monkeypatch.chdir(tmp_path)
    for path in (str(folder), f"{folder}/", folder.as_uri(), "a folder"):
        assert gw.read_state(path) == wanted
    with pytest.raises(errors.CheckpointError, match=r"on a disk .* got dbfs:/state"):
        gw.read_state("dbfs:/state")


def test_a_store_of_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = pytest.importorskip("obstore.store").LocalStore(tmp_path)
    monkeypatch.setattr(object_files, "open_store", lambda *_: opened)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    make_checkpoint(tmp_path / "a folder")
    wanted, url = gw.read_state(tmp_path / "a folder"), "s3a://bucket/a folder"
    assert gw.read_state(url) == replace(wanted, checkpoint=url)
    with pytest.raises(errors.CheckpointError, match="must be a folder: there is none, got s3a:"):
        gw.read_state("s3a://bucket/missing")


# ---- a query that runs


def run_meanwhile(monkeypatch: pytest.MonkeyPatch, step: Callable[[], None]) -> None:
    """Have something happen whenever the files of a shard were opened."""

    class Slow(StateLog):
        def check_files(self) -> None:
            step()
            super().check_files()

    monkeypatch.setattr(summary, "StateLog", Slow)


@pytest.fixture
def running_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[CheckpointWriter, Callable[[], None]]:
    """A checkpoint, and what goes on with it until no file of its last commit is left."""
    writer = make_checkpoint(tmp_path)
    monkeypatch.setattr(state_file_writer, "MERGE_FANIN", 2)

    def replace_state() -> None:
        for _ in range(3):
            writer.micro_batch(to_rows(writer.plans[""], batches(1, 40)[0]), watermark=None)

    replace_state()
    return writer, replace_state


def test_files_that_are_deleted_meanwhile_are_read(
    running_query: tuple[CheckpointWriter, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, replace_state = running_query
    before, needed = gw.read_state(writer.path), writer.last.files
    run_meanwhile(monkeypatch, replace_state)
    assert gw.read_state(writer.path) == before
    assert not any(writer.log.files.exists(name) for name in needed)


def test_where_files_cannot_all_be_open_a_later_micro_batch_is_read(
    running_query: tuple[CheckpointWriter, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, replace_state = running_query
    monkeypatch.setattr(open_files, "_SHARE", 0)
    steps = [replace_state, replace_state]
    run_meanwhile(monkeypatch, lambda: steps.pop()() if steps else None)
    found = gw.read_state(writer.path)
    assert found.batch == writer.last.number == 8
    assert found == gw.read_state(writer.path)


def test_a_query_that_is_always_faster(
    running_query: tuple[CheckpointWriter, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, replace_state = running_query
    monkeypatch.setattr(open_files, "_SHARE", 0)
    monkeypatch.setattr(checkpoints, "_ATTEMPTS", 2)
    run_meanwhile(monkeypatch, replace_state)
    attempts: list[int] = []

    def read_shards(*arguments: Any) -> Any:
        attempts.append(writer.last.number)
        return summary.read_shards(*arguments)

    monkeypatch.setattr(checkpoints, "read_shards", read_shards)
    with pytest.raises(errors.CheckpointError, match="faster than it can be read") as caught:
        gw.read_state(writer.path)
    assert isinstance(caught.value.__cause__, errors.StateCorruptedError)
    assert len(attempts) == 2
    assert attempts[0] < attempts[1] < writer.last.number


@pytest.mark.thorough
def test_tables_that_every_query_keeps(tmp_path: Path) -> None:
    """Each has rows or keys, bytes and runs; one that is by time says of which."""
    for name in queries.QUERIES:
        made = queries.plan_query(name)
        writer = CheckpointWriter(tmp_path / name, made)
        for numbers, watermark in ((range(60), None), (range(60, 90), 30 * SECOND - 1)):
            writer.micro_batch(queries.rows(made, numbers), watermark=watermark)
        for each in gw.read_state(tmp_path / name).tables:
            assert min(each.shards, each.runs, each.size) > 0
            assert (each.start is None) == (each.end is None)
            assert each.start is None or each.end is None or each.start < each.end
