"""Count the machine instructions of a kernel, and of its loop, in what nvdisasm says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?P<text>[^/;]*);")
_LABEL = re.compile(r"(?P<name>[\w.$]+):\s*$")
_PREDICATE = re.compile(r"@!?\w+\s+")
_TARGET = re.compile(r"`\((?P<name>[\w.$]+)\)")

#: Where a branch to a register may go, as nvdisasm found out.
_TARGETS = re.compile(r'BRANCH_TARGETS (?P<names>[\w.$,]+)"')

#: Branches that go where a register says: nvdisasm must say which places these are.
_INDIRECT = ("BRX", "JMP", "JMX")


@dataclass(frozen=True)
class Instructions:
    """How many machine instructions there are, each counted once.

    Parameters
    ----------
    whole : int
        Of the kernel and of the functions that it calls, without padding.
    loop : int
        Of the largest loop, with the loops within it, both sides of its branches and the functions
        that it calls; 0 if there is none. One pass of it is one item, or several where ptxas
        unrolled it.
    """

    whole: int
    loop: int


class UnknownFlowError(Exception):
    """A branch that does not say where it goes."""


@dataclass(frozen=True)
class _Instruction:
    """One line: where control may go next, and the function called, as places in the listing."""

    follow: tuple[int, ...]
    called: int | None
    is_padding: bool


def count(listing: str) -> Instructions:
    """Count the instructions of a kernel, the first function in the output of ``nvdisasm -c``."""
    lines, labels = _parse(listing)
    code = [_resolve(i, line, labels) for i, line in enumerate(lines)]
    loops = [_with_called(code, body) for body in _loops(code)]
    whole = sum(not instruction.is_padding for instruction in code)
    return Instructions(whole, max(map(len, loops), default=0))


def _parse(listing: str) -> tuple[list[str], dict[str, int]]:
    """Return the instructions, and how many of them come before each label."""
    lines: list[str] = []
    labels: dict[str, int] = {}
    for line in listing.splitlines():
        if found := _INSTRUCTION.match(line):
            lines.append(found["text"].strip())
        elif found := _LABEL.match(line):
            labels[found["name"]] = len(lines)
    return lines, labels


def _resolve(place: int, line: str, labels: Mapping[str, int]) -> _Instruction:
    text = _PREDICATE.sub("", line, count=1)
    operation, _, operands = text.partition(" ")
    name, target = operation.partition(".")[0], _TARGET.search(operands)
    after, is_conditional = (place + 1,), text != line
    if name in _INDIRECT and (targets := _TARGETS.search(operands)):
        places = tuple(labels[each] for each in targets["names"].split(","))
        return _Instruction((*places, *(after if is_conditional else ())), None, is_padding=False)
    if name in _INDIRECT or (name in ("BRA", "CALL") and target is None):
        raise UnknownFlowError(line.strip())
    if name == "BRA" and target is not None:
        there = labels[target["name"]]
        if is_conditional or operands[: target.start()].strip():  # a condition as an operand
            return _Instruction((there, *after), None, is_padding=False)
        return _Instruction((there,), None, is_padding=there == place)
    if name == "CALL" and target is not None:
        return _Instruction(after, labels[target["name"]], is_padding=False)
    if name in ("EXIT", "RET"):
        return _Instruction(after if is_conditional else (), None, is_padding=False)
    return _Instruction(after, None, is_padding=name == "NOP")


def _loops(code: Sequence[_Instruction]) -> Iterator[set[int]]:
    """Yield the natural loop of every place that is branched back to.

    That is what can reach the branches without passing that place. Where it holds the kernel's
    beginning, the branch only comes back from code that was put out of the way.
    """
    before: dict[int, list[int]] = {}
    for place, instruction in enumerate(code):
        for there in instruction.follow:
            before.setdefault(there, []).append(place)
    backs: dict[int, list[int]] = {}
    for place, instruction in enumerate(code):
        for there in instruction.follow:
            if there <= place and not instruction.is_padding:
                backs.setdefault(there, []).append(place)
    for head, tails in backs.items():
        bodies = [_reached(before, tail, {head}) for tail in tails]
        yield set().union(*(body for body in bodies if 0 not in body or head == 0))


def _with_called(code: Sequence[_Instruction], body: set[int]) -> set[int]:
    follow = {place: instruction.follow for place, instruction in enumerate(code)}
    called = {entry for place in body if (entry := code[place].called) is not None}
    return body.union(*(_reached(follow, entry, set()) for entry in called))


def _reached(edges: Mapping[int, Sequence[int]], begin: int, walls: set[int]) -> set[int]:
    """Return ``walls`` and all that is reached from a place without passing them."""
    reached, waiting = set(walls), [begin]
    while waiting:
        place = waiting.pop()
        if place not in reached:
            reached.add(place)
            waiting.extend(edges.get(place, ()))
    return reached
