"""The text of a kernel's PTX, taken apart: parameters, registers, shared arrays, instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"\.visible \.entry \S+?\((.*?)\n\)(.*?)\n\{(.*?)\n\}", re.DOTALL)
_PARAMETER = re.compile(r"\.param \.(\w+) (\S+?_param_\d+)")
_REGISTERS = re.compile(r"\.reg \.(\w+)\s+%(\w+)<(\d+)>;")
_SHARED = re.compile(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\]")
_LABEL = re.compile(r"\$(\w+):")
_GUARD = re.compile(r"@(!?)%(\w+)\s+")
#: Commas between operands, not those within `{a, b}` and `[a]`.
_COMMA = re.compile(r",(?![^{\[]*[\]}])")
_IGNORED = (".reg", ".pragma", ".loc", ".file", ".shared")
#: So that any item of a shared array is aligned.
_SHARED_ALIGNMENT = 16


class UnknownPtxError(NotImplementedError):
    """PTX that the translation does not know. Nothing is guessed."""


@dataclass(frozen=True)
class Instruction:
    """An instruction, such as ``@%p1 ld.global.u64 %rd2, [%rd1+8];``.

    Attributes
    ----------
    text : str
        Without the guard.
    guard : str
        The C of its condition, or nothing.
    name : str
        ``"ld"``.
    parts : tuple of str
        ``("global", "u64")``.
    operands : tuple of str
        ``("%rd2", "[%rd1+8]")``.
    """

    text: str
    guard: str
    name: str
    parts: tuple[str, ...]
    operands: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The type that it works on, its last part."""
        return self.parts[-1]


@dataclass(frozen=True)
class Label:
    """A place that branches lead to."""

    name: str


@dataclass(frozen=True)
class Program:
    """A kernel.

    Attributes
    ----------
    parameters : dict of str to int
        Names, and the place of each among the words of a launch. Each is 8 bytes.
    registers : tuple of (str, str, int)
        Type, name without number, and how many.
    shared : dict of str to int
        Arrays of a block, and where each begins.
    shared_bytes : int
        Of all of them.
    body : tuple of Instruction or Label
    """

    parameters: dict[str, int]
    registers: tuple[tuple[str, str, int], ...]
    shared: dict[str, int]
    shared_bytes: int
    body: tuple[Instruction | Label, ...]


def parse(text: str) -> Program:
    """Take a kernel's PTX apart.

    Parameters
    ----------
    text : str
        A module with one entry and no other function.

    Raises
    ------
    UnknownPtxError
        For a module of another form.
    """
    entries = _ENTRY.findall(text)
    if len(entries) != 1 or ".func" in text:
        raise UnknownPtxError(f"{len(entries)} entries, or functions besides")
    head, _, body = entries[0]
    parameters = _PARAMETER.findall(head)
    if wrong := [kind for kind, _ in parameters if kind not in ("u64", "f64", "b64", "s64")]:
        raise UnknownPtxError(f"parameters of {wrong}, not of 8 bytes")
    shared, size = _shared_arrays(text)
    return Program(
        {name: place for place, (_, name) in enumerate(parameters)},
        tuple((kind, name, int(count)) for kind, name, count in _REGISTERS.findall(body)),
        shared,
        size,
        tuple(_parse_line(line) for line in _lines(body)),
    )


def _shared_arrays(text: str) -> tuple[dict[str, int], int]:
    """Return where each shared array begins, and how many bytes they take together."""
    places, size = {}, 0
    for alignment, name, length in _SHARED.findall(text):
        if int(alignment) > _SHARED_ALIGNMENT:
            raise UnknownPtxError(f"a shared array that is aligned to {alignment} bytes")
        places[name] = size
        size += -(-int(length) // _SHARED_ALIGNMENT) * _SHARED_ALIGNMENT
    return places, size


def _lines(body: str) -> list[str]:
    """Return instructions and labels, without comments and what says nothing to run."""
    lines = (line.split("//")[0].strip() for line in body.splitlines())
    return [line for line in lines if line and not line.startswith(_IGNORED)]


def _parse_line(line: str) -> Instruction | Label:
    if found := _LABEL.fullmatch(line):
        return Label(found[1])
    guard = ""
    if found := _GUARD.match(line):
        guard, line = f"{found[1]}s->{found[2]}", line[found.end() :]
    if not line.endswith(";"):
        raise UnknownPtxError(line)
    text = " ".join(line[:-1].split())
    opcode, _, rest = text.partition(" ")
    name, *parts = opcode.split(".")
    operands = tuple(part.strip() for part in _COMMA.split(rest)) if rest else ()
    return Instruction(text, guard, name, tuple(parts), operands)
