"""Compares what we emitted with what Flink emitted, by the rules of the scenario format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

from gpu_windows.rules import LONG_MAX
from tests.conformance.replay import Replayed
from tests.conformance.scenario import Fields, Scenario

#: Fields of an emission that only a replay with scripted watermarks has.
_CAUSE = ("step", "fired", "fired_time")
_LATE = ("step", "key", "ts", "value", "seq")
#: Fields that hold a number that may be written without a fraction.
_NUMBERS = (
    *("value", "result", "left", "right", "threshold", "sum", "mean", "read"),
    *("l", "r", "s", "m", "mi", "agg"),
)


@dataclass(frozen=True)
class Difference:
    """One place where the two differ; None on a side that has nothing there.

    Parameters
    ----------
    what : str
        Such as ``"emission 3"``.
    flink, ours : mapping or None
        The rows that differ; None where one side has no such row.
    """

    what: str
    flink: Fields | None
    ours: Fields | None


def compare_replay(scenario: Scenario, replayed: Replayed) -> list[Difference]:
    """Compare a local replay: every field, the order, the late records and the counters.

    Of a statement in SQL the multiset of rows.

    Emissions of timers of one time within one step may come in any order.
    """
    if scenario.is_statement:
        in_the_end = scenario.is_bounded
        differences = compare_statement(scenario, replayed.emissions, in_the_end=in_the_end)
        return [*differences, *_nothing_left(replayed)]
    flink = _settle_ties([_canonical(e, scenario) for e in scenario.expected], scenario)
    ours = _settle_ties([_canonical(e, scenario) for e in replayed.emissions], scenario)
    differences = list(_pairwise("emission", flink, ours))
    for tag in scenario.side.keys() | replayed.sides.keys():
        sides = (scenario.side.get(tag, ()), replayed.sides.get(tag, ()))
        pair = ([_canonical(_without(e, _CAUSE), scenario) for e in side] for side in sides)
        differences += _pairwise(f"side output {tag}", *map(_by_key, pair))
    counts = {"rows": len(scenario.records)}
    if scenario.operator.late_side_output:
        excused = late_by_overflow(scenario)
        late = [_canonical(_only(e, _LATE), scenario) for e in scenario.late if e not in excused]
        late_of_ours = [_canonical(e, scenario) for e in replayed.late]
        differences += _pairwise("late record", late, late_of_ours)
        counts["late"] = len(late)
    differences += _nothing_left(replayed)
    counted = {name: getattr(replayed.counters, name) for name in counts}
    return [*differences, *_pairwise("counters", [counts], [counted])]


def _nothing_left(replayed: Replayed) -> Iterator[Difference]:
    nothing = dict.fromkeys(replayed.left, 0)
    return _pairwise("state left at the end", [nothing], [replayed.left])


def compare_rows(scenario: Scenario, rows: Sequence[Fields]) -> list[Difference]:
    """Compare the rows of a batch job: the multiset of (key, window, payload, timestamp)."""
    if scenario.is_statement:
        end = len(scenario.input)
        rows = [{"step": end, **row} for row in rows]
        return compare_statement(scenario, rows, in_the_end=True)
    return _multiset(scenario, scenario.expected, rows)


def compare_statement(
    scenario: Scenario, rows: Sequence[Fields], *, in_the_end: bool = False
) -> list[Difference]:
    """Compare the rows of a statement in SQL: the multiset.

    Parameters
    ----------
    scenario : Scenario
    rows : list of mapping
        With ``step``, the element of the input that they came with. Where the recorded run tells
        the last watermark before a row (``wm``), that has to be the same. Ours are all new
        rows: where Flink updates one, only the new one counts. Of changes, Flink's are without what
        was there before an update.
    in_the_end : bool
        Of changes, whether ours are what there is after all of them.
    """
    expected = [row for row in scenario.expected if row["op"] != "-U"]
    if scenario.operator.kind != "top_n":
        expected = [{**row, "op": "+I"} if row["op"] == "+U" else row for row in expected]
    elif in_the_end:
        return _multiset(scenario, _in_the_end(scenario), [_without(r, _CAUSE) for r in rows])
    if any("wm" in row for row in scenario.expected):
        before = list(scenario.watermarks_before())
        rows = [{**row, "wm": before[row["step"]]} for row in rows]
    if any(name.startswith("table.exec.emit.") for name in scenario.sql_options):
        rows = list(_changes(rows))
    return _multiset(scenario, expected, [_without(row, _CAUSE) for row in rows])


def _in_the_end(scenario: Scenario) -> list[Fields]:
    """Return the rows of a table after all its changes, as insertions."""
    table: list[Fields] = []
    tells_before = any(row["op"] == "-U" for row in scenario.expected)
    for row in scenario.expected:
        content = _without(row, ("op", "wm"))
        if row["op"] in ("-U", "-D"):
            table.remove(content)
            continue
        if row["op"] == "+U" and not tells_before:  # of one row a key
            table = [other for other in table if other["key"] != row["key"]]
        table.append(content)
    return [{**row, "op": "+I"} for row in table]


def _changes(rows: Iterable[Fields]) -> Iterator[Fields]:
    """Yield the rows of group windows that change their table.

    Flink's SQL says nothing when a window fires again with what it gave before; a stream of
    firings does.
    """
    known: dict[tuple[object, ...], Fields] = {}
    for row in rows:
        window = (row["key"], row["ws"], row["we"])
        content = _without(row, (*_CAUSE, "wm"))
        if known.get(window) != content:
            yield row
        known[window] = content


def compare_sides(
    scenario: Scenario, steps: Collection[int], sides: Mapping[str, Sequence[Fields]]
) -> list[Difference]:
    """Compare what went to side outputs in some steps: the multisets.

    ``sides``: rows by tag; see `compare_part`.
    """
    differences: list[Difference] = []
    for tag in scenario.side.keys() | sides.keys():
        expected = [e for e in scenario.side.get(tag, ()) if e["step"] in steps]
        differences += _multiset(scenario, expected, sides.get(tag, ()))
    return differences


def compare_part(
    scenario: Scenario, steps: Collection[int], rows: Sequence[Fields], late: Sequence[int]
) -> list[Difference]:
    """Compare what came of some steps: the multisets of rows and of late records.

    Parameters
    ----------
    scenario : Scenario
    steps : set of int
        Of the elements of the input that were taken at once.
    rows : list of mapping
        What the runner gave.
    late : list of int
        Numbers of the rows that were given back.
    """
    expected = [e for e in scenario.expected if e["step"] in steps]
    differences = _multiset(scenario, expected, rows)
    if scenario.operator.late_side_output:
        excused = late_by_overflow(scenario)
        wanted = [e["seq"] for e in scenario.late if e["step"] in steps and e not in excused]
        if sorted(wanted) != sorted(late):
            flink, ours = ({"seq": sorted(each)} for each in (wanted, late))
            differences.append(Difference(f"late records of {min(steps)}", flink, ours))
    return differences


def _multiset(
    scenario: Scenario, expected: Sequence[Fields], rows: Sequence[Fields]
) -> list[Difference]:
    flink = [_canonical(_without(e, _CAUSE), scenario) for e in expected]
    ours = [_canonical(row, scenario) for row in rows]
    flink_counts, our_counts = Counter(map(_text, flink)), Counter(map(_text, ours))
    missing = sorted((flink_counts - our_counts).elements())
    extra = sorted((our_counts - flink_counts).elements())
    return list(_pairwise("row", map(json.loads, missing), map(json.loads, extra)))


def _pairwise(what: str, flink: Iterable[Fields], ours: Iterable[Fields]) -> Iterator[Difference]:
    for index, (left, right) in enumerate(zip_longest(flink, ours)):
        if left is None or right is None or not _agree(left, right):
            yield Difference(f"{what} {index}", left, right)


def _agree(flink: Fields, ours: Fields) -> bool:
    """Whether all fields are equal; a step that our side cannot know is equal to any."""
    if ours.get("step", 0) is None:
        flink, ours = _without(flink, ("step",)), _without(ours, ("step",))
    return flink == ours


def late_by_overflow(scenario: Scenario) -> list[Fields]:
    """Return Flink's late records that are late by its overflow alone.

    Flink tests a row in a gap between windows with ``ts + lateness <= watermark``, where the
    sum wraps around (WindowOperator.isElementLate). Ours does not: beyond the end of time
    nothing is late. Such a row is then in a gap, counted, and left out of the comparison.
    """
    lateness = scenario.operator.allowed_lateness_ms
    return [fields for fields in scenario.late if fields["ts"] + lateness > LONG_MAX]


def _settle_ties(emissions: list[dict[str, Any]], scenario: Scenario) -> list[dict[str, Any]]:
    """Sort the emissions of timers of one time and step by key and window.

    Pairs of one firing too, where Flink's hash order is in them.
    """
    of_rows = scenario.operator.kind == "interval_join"
    hashed = not scenario.elements_in_arrival_order
    if scenario.has_tied_timers:
        return _by_key(emissions)
    settled: list[dict[str, Any]] = []
    for (_, fired, _), tied in groupby(emissions, key=lambda e: tuple(map(e.get, _CAUSE))):
        by_timer = fired != "element"
        group = list(tied)
        if by_timer:
            group.sort(key=_window)
        if of_rows:
            group.sort(key=_pair)
        elif hashed:
            group = [e for _, same in groupby(group, key=_window) for e in sorted(same, key=_pair)]
        settled += group
    return settled


def _by_key(emissions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was emitted for one key after the other, in order for each."""
    return sorted(emissions, key=lambda emission: emission["key"] or "")


def _window(emission: Fields) -> tuple[str, int]:
    return emission["key"] or "", emission.get("window_start") or 0


def _pair(emission: Fields) -> tuple[int, int]:
    """Return which pair this is, if it is one."""
    left, right = (emission.get(f"{side}_seq") for side in ("left", "right"))
    return (left, right) if isinstance(left, int) and isinstance(right, int) else (0, 0)


# ---- one form for equal things


def _canonical(fields: Fields, scenario: Scenario) -> dict[str, Any]:
    canonical = dict(fields)
    for name in _NUMBERS:
        if isinstance(canonical.get(name), int):
            canonical[name] = float(canonical[name])
    for name in ("elements", "left", "right", "list"):
        if isinstance(canonical.get(name), list):
            canonical[name] = [float(value) for value in canonical[name]]
    if "map" in canonical:
        canonical["map"] = [[float(value) for value in pair] for pair in canonical["map"]]
    if "rules" in canonical:
        canonical["rules"] = [[name, float(value)] for name, value in canonical["rules"]]
    return canonical if scenario.elements_in_arrival_order else _sorted_elements(canonical)


def _sorted_elements(fields: dict[str, Any]) -> dict[str, Any]:
    """Put element lists whose order comes from Flink's hash order into the order of the input."""
    for values, seq in (("elements", "seq"), ("left", "left_seq"), ("right", "right_seq")):
        if isinstance(fields.get(values), list):
            pairs = sorted(zip(fields[seq], fields[values], strict=True))
            fields = {**fields, seq: [s for s, _ in pairs], values: [v for _, v in pairs]}
    if isinstance(fields.get("result"), str):
        numbers = filter(None, fields["result"].split(","))
        return {**fields, "result": ",".join(sorted(numbers, key=int))}
    return fields


def _only(fields: Fields, names: Iterable[str]) -> dict[str, Any]:
    return {name: fields[name] for name in names}


def _without(fields: Fields, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _text(fields: Fields) -> str:
    return json.dumps(fields, sort_keys=True)
