"""Scenario files: what was asked of Apache Flink, and what it answered.

The format: one JSON object a file with ``operator``, ``input`` and what came of it. All times
are milliseconds. Only the kind ``window`` is read in depth; of the others, what a report needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.conformance.errors import ScenarioError

#: An emission or late record as the file has it.
Fields = Mapping[str, Any]

_EMISSION = ("step", "fired", "key", "window_start", "window_end", "timestamp")
_LATE = ("step", "key", "ts", "value", "seq")
#: Kinds that may be restarted.
_RESTARTED = ("process", "co_process", "broadcast_process")


@dataclass(frozen=True)
class Record:
    """An input record; ``seq`` is its index in the input, markers counted."""

    seq: int
    key: str
    ts: int
    value: float
    side: str | None = None


@dataclass(frozen=True)
class Watermark:
    """A watermark after the records before it; of one side, or of all inputs."""

    seq: int
    time: int
    side: str | None = None


@dataclass(frozen=True)
class ProcessingTime:
    """Processing time is set to ``time``."""

    seq: int
    time: int


@dataclass(frozen=True)
class Restart:
    """The job is stopped with a savepoint, and one of the same operator begins from it."""

    seq: int


Element = Record | Watermark | ProcessingTime | Restart


@dataclass(frozen=True)
class Part:
    """A part of an operator: its type and its parameters."""

    role: str
    type: str
    parameters: Mapping[str, object]

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a whole-number parameter.

        Raises
        ------
        ScenarioError
            If it is missing without a default, or is no whole number of 64 bits.
        """
        value = self.parameters.get(name, default)
        if not _is_long(value):
            rule = f"operator.{self.role}.{name} must be a 64-bit integer"
            raise ScenarioError(rule, value=repr(value))
        assert isinstance(value, int)
        return value

    def number(self, name: str) -> float:
        """Return a number.

        Raises
        ------
        ScenarioError
            If it is missing or is no number.
        """
        value = self.parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            rule = f"operator.{self.role}.{name} must be a number"
            raise ScenarioError(rule, value=repr(value))
        return float(value)

    def flag(self, name: str) -> bool:
        """Return whether a parameter is there and true."""
        return self.parameters.get(name) is True

    def word(self, name: str) -> str:
        """Return a parameter that is a string."""
        return _text(self.parameters, name)

    def words(self, name: str) -> tuple[str, ...]:
        """Return a parameter that is a list of strings.

        Raises
        ------
        ScenarioError
            If it is none.
        """
        value = self.parameters.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            rule = f"operator.{self.role}.{name} must be a list of strings"
            raise ScenarioError(rule, value=repr(value))
        return tuple(value)

    def part(self, name: str) -> Part:
        """Return a nested part, such as the trigger inside a purging one."""
        part = _part(self.parameters, name, f"{self.role}.{name}")
        if part is None:
            raise ScenarioError(f"operator.{self.role}.{name} is missing")
        return part


@dataclass(frozen=True)
class OperatorSpec:
    """The operator that was run; the parts are None where the file has null or nothing.

    ``whole`` has the parameters that are of no part, such as the bounds of an interval join.
    """

    kind: str
    assigner: Part | None
    trigger: Part | None
    evictor: Part | None
    function: Part | None
    allowed_lateness_ms: int
    late_side_output: bool
    whole: Part


@dataclass(frozen=True)
class FlinkError:
    """The root exception with which Flink refused the scenario."""

    kind: str
    message: str


@dataclass(frozen=True)
class Scenario:
    """One scenario file.

    ``expected`` and ``late`` hold what Flink emitted, in order, ``side`` what went to side outputs,
    by tag; ``expected_error`` stands in
    their place where Flink refused. ``sql`` is the statement of what was asked in SQL,
    under the ``sql_options`` by Flink's names.
    """

    path: Path
    name: str
    family: str
    operator: OperatorSpec
    input: tuple[Element, ...]
    expected: tuple[Fields, ...]
    late: tuple[Fields, ...]
    side: Mapping[str, tuple[Fields, ...]]
    elements_in_arrival_order: bool
    sql: str | None
    sql_options: Fields
    expected_error: FlinkError | None

    @property
    def is_statement(self) -> bool:
        """Whether it was asked in SQL."""
        return self.sql is not None

    @property
    def has_tied_timers(self) -> bool:
        """Whether tied timers set timers that are past: only those of a key have an order."""
        function = self.operator.function
        return function is not None and function.type == "timers_in_timers"

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of the input, without its markers."""
        return tuple(element for element in self.input if isinstance(element, Record))

    @property
    def is_restarted(self) -> bool:
        """Whether the operator is stopped and restored between elements."""
        return any(isinstance(element, Restart) for element in self.input)

    @property
    def is_bounded(self) -> bool:
        """Whether the input holds records only, as a batch job sees it."""
        return len(self.records) == len(self.input)

    def watermarks_before(self) -> Iterator[int | None]:
        """Yield the watermark before each element of one input, and before its end, if any."""
        reached: int | None = None
        for element in self.input:
            yield reached
            if isinstance(element, Watermark):
                reached = element.time if reached is None else max(reached, element.time)
        yield reached

    @property
    def has_late_records(self) -> bool:
        """Whether a record comes when the least watermark of the inputs is past its time."""
        inputs = {element.side for element in self.input if isinstance(element, Record | Watermark)}
        reached = dict.fromkeys(inputs, LONG_MIN)
        for element in self.input:
            if isinstance(element, Watermark):
                reached[element.side] = max(reached[element.side], element.time)
            elif isinstance(element, Record) and (element.ts or 0) < min(reached.values()):
                return True
        return False


def scenario_files(paths: list[Path]) -> Iterator[Path]:
    """Yield the files among ``paths``, and the ``*.json`` files in the folders among them."""
    for path in paths:
        yield from sorted(path.rglob("*.json")) if path.is_dir() else (path,)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises
    ------
    ScenarioError
        If it cannot be read; the error names the rule and the file.
    """
    try:
        return _scenario(path, json.loads(path.read_text(encoding="utf-8")))
    except ScenarioError as error:
        got = "" if error.value is None else f", got {error.value}"
        raise ScenarioError(f"{path}: {error.rule}{got}") from error
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{path}: a scenario must be readable JSON ({error})") from error


def _scenario(path: Path, data: object) -> Scenario:
    if not isinstance(data, dict) or not {"operator", "input"} <= set(data):
        raise ScenarioError("a scenario must be a JSON object with 'operator' and 'input'")
    if ("expected" in data) == ("expected_error" in data):
        rule = "a scenario must have either 'expected' or 'expected_error', recorded from Flink"
        raise ScenarioError(rule)
    operator = _operator(_mapping(data["operator"], "operator"))
    elements = tuple(_element(seq, fields) for seq, fields in enumerate(_list(data, "input")))
    expected, late = _fields(data, "expected"), _fields(data, "late")
    if operator.kind == "window":
        _check_fields(expected, "expected", _EMISSION)
        _check_fields(late, "late", _LATE)
    if any(isinstance(each, Restart) for each in elements) and operator.kind not in _RESTARTED:
        raise ScenarioError(f"only {', '.join(_RESTARTED)} are restarted", value=operator.kind)
    return Scenario(
        path=path,
        name=_text(data, "name"),
        family=_text(data, "family"),
        operator=operator,
        input=elements,
        expected=expected,
        late=late,
        side=_sides(data),
        elements_in_arrival_order=data.get("elements_in_arrival_order", True) is True,
        sql=_text(data, "sql") if "sql" in data else None,
        sql_options=_mapping(data.get("sql_options", {}), "sql_options"),
        expected_error=_error(data),
    )


def _operator(fields: Fields) -> OperatorSpec:
    lateness = fields.get("allowed_lateness_ms", 0)
    if not _is_long(lateness):
        rule = "operator.allowed_lateness_ms must be a 64-bit integer"
        raise ScenarioError(rule, value=repr(lateness))
    return OperatorSpec(
        kind=_text(fields, "kind"),
        assigner=_part(fields, "assigner", "assigner"),
        trigger=_part(fields, "trigger", "trigger"),
        evictor=_part(fields, "evictor", "evictor"),
        function=_part(fields, "function", "function"),
        allowed_lateness_ms=lateness,
        late_side_output=fields.get("late_side_output", False) is True,
        whole=Part("whole", _text(fields, "kind"), fields),
    )


def _part(fields: Mapping[str, object], name: str, role: str) -> Part | None:
    value = fields.get(name)
    if value is None:
        return None
    parameters = _mapping(value, f"operator.{role}")
    return Part(role, _text(parameters, "type"), parameters)


def _element(seq: int, value: object) -> Element:
    fields = _mapping(value, f"input[{seq}]")
    side = fields.get("side")
    if side not in (None, "left", "right"):
        raise ScenarioError(f"input[{seq}].side must be 'left' or 'right'", value=repr(side))
    if "watermark" in fields:
        return Watermark(seq, _long(seq, fields, "watermark"), side)
    if "processing_time" in fields:
        return ProcessingTime(seq, _long(seq, fields, "processing_time"))
    if "restart" in fields:
        return Restart(seq)
    key, number = fields.get("key"), fields.get("value")
    if not isinstance(key, str):
        known = "a watermark, a processing_time, a restart or a record with a string key"
        rule = f"input[{seq}] must be {known}"
        raise ScenarioError(rule, value=repr(value))
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ScenarioError(f"input[{seq}].value must be a number", value=repr(number))
    return Record(seq, key, _long(seq, fields, "ts"), float(number), side)


def _sides(data: Fields) -> dict[str, tuple[Fields, ...]]:
    sides = _mapping(data.get("side", {}), "side")
    return {tag: _fields(sides, tag) for tag in sides}


def _error(data: Fields) -> FlinkError | None:
    if "expected_error" not in data:
        return None
    fields = _mapping(data["expected_error"], "expected_error")
    return FlinkError(_text(fields, "class"), _text(fields, "message"))


# ---- checked access


def _mapping(value: object, where: str) -> Fields:
    if not isinstance(value, dict):
        raise ScenarioError(f"{where} must be an object", value=repr(value))
    return value


def _list(data: Fields, name: str) -> list[object]:
    value = data.get(name, [])
    if not isinstance(value, list):
        raise ScenarioError(f"{name} must be a list", value=repr(value))
    return value


def _fields(data: Fields, name: str) -> tuple[Fields, ...]:
    return tuple(_mapping(v, f"{name}[{i}]") for i, v in enumerate(_list(data, name)))


def _check_fields(found: tuple[Fields, ...], name: str, required: tuple[str, ...]) -> None:
    for index, fields in enumerate(found):
        missing = [field for field in required if field not in fields]
        if missing:
            raise ScenarioError(f"{name}[{index}] must have {', '.join(missing)}")


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise ScenarioError(f"{name!r} must be a string", value=repr(value))
    return value


def _long(seq: int, fields: Fields, name: str) -> int:
    value = fields.get(name)
    if _is_long(value):
        return value
    raise ScenarioError(f"input[{seq}].{name} must be a 64-bit integer", value=repr(value))


def _is_long(value: object) -> TypeGuard[int]:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return LONG_MIN <= value <= LONG_MAX
