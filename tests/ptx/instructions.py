"""Instructions of PTX that touch no memory, as statements of C; `memory.py` has the others.

What PTX leaves undefined (a division by 0) is a pattern, as `machine/arithmetic.h` has it. Whatever
is not in these tables is an `UnknownPtxError`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.ptx.operands import C_TYPES, read, unsigned, write
from tests.ptx.program import Instruction, UnknownPtxError

_INTEGERS = ("u64", "s64", "u32", "s32", "u16", "s16")
_BITS = ("b64", "b32", "b16", "pred")
_COMPARISONS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip
_LOGIC = {"and": "&", "or": "|", "xor": "^"}


def statement(one: Instruction) -> str:
    """Return the C of an instruction.

    Raises
    ------
    UnknownPtxError
        If it is none of the tables.
    """
    make = _MAKERS.get(one.name)
    if make is None:
        raise UnknownPtxError(one.text)
    return make(one)


def _demand(one: Instruction, *parts: tuple[str, ...]) -> None:
    """Refuse an instruction whose parts are others than these, place by place."""
    known = len(parts) == len(one.parts)
    if not known or any(have not in may for have, may in zip(one.parts, parts, strict=True)):
        raise UnknownPtxError(one.text)


def _value(one: Instruction, place: int, kind: str | None = None) -> str:
    return read(one.operands[place], kind or one.kind)


def _result(one: Instruction, value: str, kind: str | None = None) -> str:
    return write(one.operands[0], kind or one.kind, value)


# ---- moves and conversions


def _move(one: Instruction) -> str:
    if "{" not in one.text:
        _demand(one, (*_INTEGERS, *_BITS, "f64"))
        return _result(one, _value(one, 1))
    _demand(one, ("b64",))
    target, source = one.operands
    if source.startswith("{"):
        low, high = (read(part.strip(), "u32") for part in source.strip("{}").split(","))
        return write(target, "u64", f"((uint64_t){high}<<32)|{low}")
    parts = [part.strip() for part in target.strip("{}").split(",")]
    halves = zip(parts, ("(uint32_t)word", "(uint32_t)(word>>32)"), strict=True)
    writes = (write(register, "u32", half) for register, half in halves if register != "_")
    return f"uint64_t word = {read(source, 'u64')}; {' '.join(writes)}"


def _convert_address(one: Instruction) -> str:
    """Shared arrays are read and written by instructions of their own, so no address is generic."""
    _demand(one, ("to",), ("global",), ("u64",))
    return _result(one, _value(one, 1))


def _convert(one: Instruction) -> str:
    if one.parts[0] == "rzi":
        _demand(one, ("rzi",), ("s64",), ("f64",))
        return _result(one, f"to_integer({_value(one, 1)})", "s64")
    if one.parts[0] == "rn":
        _demand(one, ("rn",), ("f64",), _INTEGERS)
        return _result(one, f"(double){_value(one, 1)}", "f64")
    wide = (*_INTEGERS, "u8", "s8")
    _demand(one, wide, wide)
    target = one.parts[0]
    return _result(one, f"({C_TYPES[target]}){_value(one, 1)}", target)


def _select(one: Instruction) -> str:
    _demand(one, (*_INTEGERS, *_BITS[:3], "f64"))
    return _result(one, f"{_value(one, 3, 'pred')}?{_value(one, 1)}:{_value(one, 2)}")


# ---- comparisons


def _compare(one: Instruction) -> str:
    how, kind = one.parts[0], one.kind
    left, right = _value(one, 1), _value(one, 2)
    if kind == "f64":
        _demand(
            one, (*_COMPARISONS, *(f"{name}u" for name in _COMPARISONS), "nan", "num"), ("f64",)
        )
        return _result(one, _compare_floats(how, left, right), "pred")
    _demand(one, tuple(_COMPARISONS), (*_INTEGERS, *_BITS[:3]))
    return _result(one, f"{left}{_COMPARISONS[how]}{right}", "pred")


def _compare_floats(how: str, left: str, right: str) -> str:
    """Comparisons that end in ``u`` hold where one is NaN; no other does."""
    unordered = f"(isnan({left})||isnan({right}))"
    if how in ("nan", "num"):
        return unordered if how == "nan" else f"!{unordered}"
    if how.endswith("u"):
        return f"({unordered}||{left}{_COMPARISONS[how[:-1]]}{right})"
    return f"(!{unordered}&&{left}{_COMPARISONS[how]}{right})"


# ---- arithmetic: of integers modulo their width


def _add(one: Instruction) -> str:
    sign, kind = "+" if one.name == "add" else "-", one.kind
    if kind == "f64":
        _demand(one, *((("rn",),) if len(one.parts) == 2 else ()), ("f64",))
    else:
        _demand(one, _INTEGERS)
    return _result(one, f"{_value(one, 1, unsigned(kind))}{sign}{_value(one, 2, unsigned(kind))}")


def _multiply(one: Instruction) -> str:
    kind, how = one.kind, one.parts[0]
    if kind == "f64":
        _demand(one, *((("rn",),) if len(one.parts) == 2 else ()), ("f64",))
        return _result(one, f"{_value(one, 1)}*{_value(one, 2)}")
    _demand(one, ("lo", "hi", "wide"), _INTEGERS)
    if how == "hi":
        _demand(one, ("hi",), ("u64", "s64"))
        wide = "__int128" if kind == "s64" else "unsigned __int128"
        return _result(one, f"(({wide}){_value(one, 1)}*({wide}){_value(one, 2)})>>64")
    if how == "wide":
        _demand(one, ("wide",), ("u32", "s32"))
        wide = C_TYPES[f"{kind[0]}64"]
        return _result(one, f"({wide}){_value(one, 1)}*({wide}){_value(one, 2)}", f"{kind[0]}64")
    return _result(one, _product(one))


def _product(one: Instruction) -> str:
    """16 bits are multiplied as 32 without a sign: C's `int` would overflow."""
    kind = unsigned(one.kind)
    return f"1u*{_value(one, 1, kind)}*{_value(one, 2, kind)}"


def _multiply_add(one: Instruction) -> str:
    _demand(one, ("lo",), _INTEGERS)
    return _result(one, f"{_product(one)}+{_value(one, 3, unsigned(one.kind))}")


def _fused(one: Instruction) -> str:
    _demand(one, ("rn",), ("f64",))
    return _result(one, f"fma({_value(one, 1)},{_value(one, 2)},{_value(one, 3)})")


def _divide(one: Instruction) -> str:
    kind = one.kind
    if kind == "f64":
        _demand(one, ("rn",), ("f64",))
        if one.name != "div":
            raise UnknownPtxError(one.text)
        return _result(one, f"{_value(one, 1)}/{_value(one, 2)}")
    _demand(one, ("u64", "s64", "u32", "s32"))
    return _result(one, f"{one.name}_{kind}({_value(one, 1)},{_value(one, 2)})")


def _reciprocal(one: Instruction) -> str:
    _demand(one, ("rn",), ("f64",))
    return _result(one, f"1.0/{_value(one, 1)}")


def _root(one: Instruction) -> str:
    _demand(one, ("rn",), ("f64",))
    return _result(one, f"sqrt({_value(one, 1)})")


def _negate(one: Instruction) -> str:
    _demand(one, ("s64", "s32", "s16", "f64"))
    if one.kind == "f64":
        return _result(one, f"-{_value(one, 1)}")
    return _result(one, f"0-{_value(one, 1, unsigned(one.kind))}")


def _absolute(one: Instruction) -> str:
    _demand(one, ("s64", "s32", "f64"))
    if one.kind == "f64":
        return _result(one, f"fabs({_value(one, 1)})")
    plain = _value(one, 1, unsigned(one.kind))
    return _result(one, f"({_value(one, 1)}<0?0-{plain}:{plain})")


def _extreme(one: Instruction) -> str:
    _demand(one, _INTEGERS)
    left, right, sign = _value(one, 1), _value(one, 2), "<" if one.name == "min" else ">"
    return _result(one, f"({left}{sign}{right}?{left}:{right})")


# ---- bits


def _logic(one: Instruction) -> str:
    _demand(one, _BITS)
    return _result(one, f"{_value(one, 1)}{_LOGIC[one.name]}{_value(one, 2)}")


def _invert(one: Instruction) -> str:
    _demand(one, _BITS)
    sign = "!" if one.kind == "pred" else "~"
    return _result(one, f"{sign}{_value(one, 1)}")


def _shift(one: Instruction) -> str:
    """PTX shifts by more than the width, too; C does not."""
    _demand(one, (*_INTEGERS, *_BITS[:3]))
    width, by, value = int(one.kind[1:]), _value(one, 2, "u32"), _value(one, 1)
    if one.name == "shl":
        return _result(one, f"({by}>={width}?0:{_value(one, 1, unsigned(one.kind))}<<{by})")
    past = f"{value}>>{width - 1}" if one.kind.startswith("s") else "0"
    return _result(one, f"({by}>={width}?{past}:{value}>>{by})")


# ---- where the thread goes on


def _branch(one: Instruction) -> str:
    if one.parts not in ((), ("uni",)):
        raise UnknownPtxError(one.text)
    return f"goto {one.operands[0].lstrip('$')};"


def _end(one: Instruction) -> str:
    if one.parts not in ((), ("uni",)):
        raise UnknownPtxError(one.text)
    return "s->place=-1; return OVER;"


_MAKERS: dict[str, Callable[[Instruction], str]] = {
    "mov": _move, "cvta": _convert_address, "cvt": _convert, "selp": _select, "setp": _compare,
    "add": _add, "sub": _add, "mul": _multiply, "mad": _multiply_add, "fma": _fused,
    "div": _divide, "rem": _divide, "rcp": _reciprocal, "sqrt": _root, "neg": _negate,
    "abs": _absolute, "min": _extreme, "max": _extreme, "and": _logic, "or": _logic,
    "xor": _logic, "not": _invert, "shl": _shift, "shr": _shift, "bra": _branch, "ret": _end,
    "exit": _end,
}  # fmt: skip
