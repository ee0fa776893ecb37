"""Operands of PTX as expressions of C. A register is a member of the thread ``s``."""

from __future__ import annotations

import re

from tests.ptx.program import UnknownPtxError

#: The types of PTX in C. Registers without a sign (`b64`) are unsigned.
C_TYPES = {
    "u64": "uint64_t", "s64": "int64_t", "b64": "uint64_t", "f64": "double",
    "u32": "uint32_t", "s32": "int32_t", "b32": "uint32_t",
    "u16": "uint16_t", "s16": "int16_t", "b16": "uint16_t",
    "u8": "uint8_t", "s8": "int8_t", "b8": "uint8_t", "pred": "int",
}  # fmt: skip
#: The type of a register, by its name without number.
_REGISTER_TYPES = {"p": "pred", "rs": "b16", "r": "b32", "rd": "b64", "fd": "f64"}
_SPECIAL = {
    "%tid.x": "s->thread", "%ctaid.x": "s->block", "%ntid.x": "launch.threads",
    "%nctaid.x": "launch.blocks",
}  # fmt: skip
_REGISTER = re.compile(r"%(p|rs|r|rd|fd)(\d+)")
_DOUBLE = re.compile(r"0d([0-9A-Fa-f]{16})")
_INTEGER = re.compile(r"-?\d+")
_ADDRESS = re.compile(r"\[(.+?)(?:\+(-?\d+))?\]")


def register_type(name: str) -> str:
    """Return the type of a register, such as ``"b64"`` of ``"%rd7"``."""
    found = _REGISTER.fullmatch(name)
    if found is None:
        raise UnknownPtxError(f"{name} is no register")
    return _REGISTER_TYPES[found[1]]


def read(operand: str, kind: str) -> str:
    """Return the C that reads an operand as a type.

    Parameters
    ----------
    operand : str
        A register, a number, or the name of a shared array.
    kind : str
        Of `C_TYPES`.
    """
    if found := _DOUBLE.fullmatch(operand):
        bits = f"0x{found[1]}ull"
        return f"as_double({bits})" if kind == "f64" else bits
    if _INTEGER.fullmatch(operand):
        if kind == "f64":
            return f"as_double({operand}ll)"
        number = "INT64_MIN" if int(operand) == -(2**63) else f"{operand}ll"
        return f"(({C_TYPES[kind]}){number})"
    if operand in _SPECIAL:
        return f"(({C_TYPES[kind]}){_SPECIAL[operand]})"
    if not _REGISTER.fullmatch(operand):
        if not operand.startswith("_cudapy_smem"):
            raise UnknownPtxError(operand)
        return f"((uint64_t)(s->shared+AT_{operand}))"
    place, own = f"s->{operand[1:]}", register_type(operand)
    if own == "pred" or own == kind == "f64":
        return place
    if own == "f64":
        return f"(({C_TYPES[kind]})as_bits({place}))"
    return f"as_double({place})" if kind == "f64" else f"(({C_TYPES[kind]}){place})"


def write(register: str, kind: str, value: str) -> str:
    """Return the C that writes a value of a type to a register."""
    own, place = register_type(register), f"s->{register[1:]}"
    if own == "f64":
        return f"{place} = {value};" if kind == "f64" else f"{place} = as_double({value});"
    if kind == "f64":
        return f"{place} = as_bits({value});"
    return f"{place} = ({C_TYPES[own]})({value});"


def address(operand: str) -> str:
    """Return the C of an address, such as ``[%rd1+-8]``."""
    found = _ADDRESS.fullmatch(operand)
    if found is None:
        raise UnknownPtxError(f"{operand} is no address")
    return f"({read(found[1], 'u64')}+({found[2] or 0}))"


def unsigned(kind: str) -> str:
    """Return the type in which arithmetic wraps around."""
    return f"u{kind[1:]}" if kind.startswith("s") else kind
