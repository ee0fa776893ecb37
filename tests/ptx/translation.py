"""A kernel's PTX as C: a thread is a struct of registers, its code a switch over places.

A thread may stop before each access to memory, and does stop at each barrier; the place at which
it goes on is a case of the switch. So one thread of the system runs all threads of a grid, in any
order. What an access checks, and in which order threads run, is in `machine`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.ptx.instructions import statement
from tests.ptx.operands import C_TYPES, address, read, write
from tests.ptx.program import Instruction, Label, Program, UnknownPtxError, parse

#: What instructions that access memory may say. Of atomics, PTX's default is relaxed; what orders
#: more than its own address is not known here.
_ORDERS = ("relaxed",)
_SCOPES = ("gpu", "cta", "sys")
_WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8}
_OPERATIONS = ("add", "min", "max", "cas", "exch")


@dataclass(frozen=True)
class Translation:
    """A kernel in C.

    Attributes
    ----------
    code : str
        Definitions that the machine's files need.
    sites : tuple of str
        The PTX of every access to memory and every barrier, and labels; each has its number.
    """

    code: str
    sites: tuple[str, ...]


@dataclass
class _Writer:
    program: Program
    sites: list[str] = field(default_factory=list)

    def site(self, text: str) -> int:
        """Return the number of a place where a thread may stop."""
        self.sites.append(text)
        return len(self.sites) - 1


def translate(text: str) -> Translation:
    """Return a kernel's PTX as C.

    Raises
    ------
    UnknownPtxError
        If there is anything in it that this does not know.
    """
    program = parse(text)
    writer = _Writer(program)
    lines = [_line(writer, one) for one in program.body]
    registers = (
        f"{C_TYPES[kind]} {name}{number};"
        for kind, name, count in program.registers
        for number in range(count)
    )
    code = [
        f"#define SHARED_BYTES {program.shared_bytes}",
        *(f"#define AT_{name} {place}" for name, place in program.shared.items()),
        f"#define SITES {len(writer.sites)}",
        f"#define HAS_BARRIERS {int(any('bar.sync' in site for site in writer.sites))}",
        f"#define REGISTERS {' '.join(registers)}",
        "#define CODE \\",
        *(f"{line} \\" for line in lines),
        "",
    ]
    return Translation("\n".join(code), tuple(writer.sites))


def _line(writer: _Writer, one: Instruction | Label) -> str:
    if isinstance(one, Label):
        return f"{one.name}:; LABEL({writer.site(one.name) + 1})"
    made = _statement(writer, one)
    return f"COUNT if({one.guard}) {{ {made} }}" if one.guard else f"COUNT {{ {made} }}"


def _statement(writer: _Writer, one: Instruction) -> str:
    if one.name == "ld" and one.parts[0] == "param":
        return _parameter(writer, one)
    if one.name in ("ld", "st", "atom", "red"):
        return _access(writer, one)
    if one.name == "bar":
        if one.parts == ("warp", "sync"):
            return ""  # every order of the threads of a warp is tried anyway
        if one.parts != ("sync",) or one.operands != ("0",):
            raise UnknownPtxError(one.text)
        return f"BARRIER({writer.site(one.text) + 1})"
    if one.name in ("membar", "fence"):
        return "fence(s);"
    return statement(one)


def _parameter(writer: _Writer, one: Instruction) -> str:
    place = writer.program.parameters[one.operands[1].strip("[]")]
    return write(one.operands[0], one.kind, f"*({C_TYPES[one.kind]}*)launch.parameters[{place}]")


def _access(writer: _Writer, one: Instruction) -> str:
    """Return the C of a load, a store or an atomic: the thread may stop, and then does it."""
    kind, name = one.kind, one.name
    width = _WIDTHS.get(kind[1:])
    spaces = [part for part in one.parts[:-1] if part in ("global", "shared")]
    others = [part for part in one.parts[:-1] if part not in ("global", "shared")]
    if width is None or len(spaces) != 1 or "{" in one.text:
        raise UnknownPtxError(one.text)
    site = writer.site(one.text)
    begin = f"ACCESS({site + 1})"
    where = f"{site},{address(one.operands[0 if name in ('st', 'red') else 1])},{width}"
    shared = int(spaces[0] == "shared")
    if name in ("atom", "red"):
        return f"{begin} {_atomic(one, others, where, shared)}"
    strong = _is_strong(one, others)
    if name == "ld":
        raw = f"load(s,{where},{shared},{strong})"
        return f"{begin} {write(one.operands[0], kind, _of_bits(raw, kind))}"
    value = read(one.operands[1], kind)
    value = f"as_bits({value})" if kind == "f64" else f"(uint64_t){value}"
    return f"{begin} store(s,{where},{value},{shared},{strong});"


def _is_strong(one: Instruction, others: list[str]) -> int:
    """Return whether a load or store goes to where all threads meet, as a relaxed one does."""
    if set(others) - {"relaxed", "volatile", "nc", *_SCOPES}:
        raise UnknownPtxError(one.text)
    return int("relaxed" in others or "volatile" in others)


def _of_bits(raw: str, kind: str) -> str:
    return f"as_double({raw})" if kind == "f64" else f"({C_TYPES[kind]}){raw}"


def _atomic(one: Instruction, others: list[str], where: str, shared: int) -> str:
    kind = one.kind
    operations = [part for part in others if part in _OPERATIONS]
    if len(operations) != 1 or set(others) - {*_OPERATIONS, *_ORDERS, *_SCOPES} or kind == "f64":
        raise UnknownPtxError(one.text)
    operands = one.operands if one.name == "atom" else ("", *one.operands)
    old, new = f"(({C_TYPES[kind]})old)", read(operands[2], kind)
    made = {
        "add": lambda: f"{old}+{new}",
        "min": lambda: f"({old}<{new}?{old}:{new})",
        "max": lambda: f"({old}>{new}?{old}:{new})",
        "exch": lambda: new,
        "cas": lambda: f"({old}=={new}?{read(operands[3], kind)}:{old})",
    }[operations[0]]()
    width = where.rsplit(",", 1)[1]
    result = write(operands[0], kind, old) if operands[0] not in ("", "_") else ""
    return (
        f"uint64_t at, old = begin_atomic(s,{where},{shared},&at);"
        f"end_atomic(s,at,(uint64_t)({C_TYPES[kind]})({made}),{width}); {result}"
    )
