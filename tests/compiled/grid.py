"""Run a kernel's code over a grid of threads, on this CPU.

Threads that do not wait for each other run one after the other; or they take turns at each access
to an array, where that is asked for, so that what needs an atomic shows in the results. Those of a
block that do take turns at each barrier (`tests.compiled.coroutine`): forwards, and backwards, so
that an access that a barrier had to order shows.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import llvmlite.binding as llvm

from tests.compiled.arrays import POISON
from tests.compiled.coroutine import as_coroutine, for_each_thread, runner
from tests.compiled.host_code import HostCode

_REGISTERS = ("tid", "ctaid", "ntid", "nctaid")
_BYTES = {"i64": 8, "double": 8, "i32": 4, "i8": 1}


class HostKernel:
    """A kernel for one signature, ready to run.

    Parameters
    ----------
    code : HostCode
    interleaved : bool
        Whether threads take turns at each access, if they do not at barriers.
    """

    def __init__(self, code: HostCode, *, interleaved: bool = False) -> None:
        self._waits, self._interleaved = code.waits, interleaved and not code.waits
        self._functions: dict[str, Any] = {}
        self._engine = _compiled(code, interleaved=self._interleaved)
        at = self._engine.get_global_value_address
        self._registers = {
            name: ctypes.c_int32.from_address(at(f"gw.at.{name}")) for name in _REGISTERS
        }
        self._shared = [(at(name.strip('"')), _size_of(dtype)) for name, dtype in code.shared]

    def run(self, blocks: int, threads: int, parameters: int, *, backwards: bool = False) -> None:
        """Run all threads of a grid.

        Parameters
        ----------
        blocks, threads : int
        parameters : int
            Address of an array with the address of every argument, as ``cuLaunchKernel`` takes it.
        backwards : bool
            Whether the last thread of a block is the first to run.
        """
        self._registers["ntid"].value, self._registers["nctaid"].value = threads, blocks
        handles = (ctypes.c_void_p * threads)()
        for block in range(blocks):
            self._registers["ctaid"].value = block
            if self._waits or self._interleaved:
                self._block(parameters, handles, threads, int(backwards))
            else:
                self._function("gw.all")(parameters, handles, threads, int(backwards))

    def _block(self, parameters: int, handles: Any, threads: int, backwards: int) -> None:
        """Run the threads of a block from stop to stop."""
        for address, size in self._shared:
            ctypes.memset(address, POISON, size)
        rest = handles, threads, backwards
        self._function("gw.begin")(parameters, *rest)
        while (over := self._function("gw.over", 3)(*rest)) < threads:
            assert over == 0 or not self._waits, "not all threads of a block came to a barrier"
            self._function("gw.resume", 3)(*rest)
        self._function("gw.end", 3)(*rest)

    def _function(self, name: str, arguments: int = 4) -> Any:
        """Return a function of the code."""
        if name not in self._functions:
            types = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32][-arguments:]
            address = self._engine.get_function_address(name)
            self._functions[name] = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address)
        return self._functions[name]


@functools.cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def _compiled(code: HostCode, *, interleaved: bool) -> Any:
    """Link the modules of a kernel with what runs it, optimise, and make machine code of it."""
    machine = _target().create_target_machine(opt=2)
    takes_turns = code.waits or interleaved
    whole = llvm.parse_assembly(_support(code, takes_turns=takes_turns))
    first, *others = code.modules
    if takes_turns:
        first = as_coroutine(first, interleaved=interleaved)
    for text in (first, *others):
        whole.link_in(llvm.parse_assembly(text))
    whole.triple, whole.data_layout = machine.triple, str(machine.target_data)
    whole.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(whole, builder)
    engine = llvm.create_mcjit_compiler(whole, machine)
    engine.finalize_object()
    return engine


def _size_of(array: str) -> int:
    """Return the bytes of an array's type, such as ``[256 x i64]``."""
    count, _, item = array.strip("[]").split()
    return int(count) * _BYTES[item]


def _support(code: HostCode, *, takes_turns: bool) -> str:
    """Return what the kernel asks of the device, and what runs it."""
    lines = []
    for name in _REGISTERS:
        rest = 1 if name.startswith("n") else 0
        lines += [
            f"@gw.at.{name} = global i32 0",
            f"define i32 @gw.{name}.x() alwaysinline {{",
            f"  %value = load i32, ptr @gw.at.{name}",
            "  ret i32 %value",
            "}",
            *(f"define i32 @gw.{name}.{axis}() alwaysinline {{ ret i32 {rest} }}" for axis in "yz"),
        ]
    kernel = f"@{code.name}"
    make = runner if takes_turns else _one_after_the_other
    return "\n".join([*lines, make(kernel, code.parameters, _loads(code.parameters))])


def _loads(parameters: tuple[str, ...]) -> str:
    """Return what loads the arguments, whose addresses are in an array."""
    return "\n".join(
        f"  %at{n} = getelementptr ptr, ptr %parameters, i64 {n}\n"
        f"  %from{n} = load ptr, ptr %at{n}\n"
        f"  %v{n} = load {dtype}, ptr %from{n}"
        for n, dtype in enumerate(parameters)
    )


def _one_after_the_other(kernel: str, parameters: tuple[str, ...], loads: str) -> str:
    """Return the function that runs the threads of a block."""
    arguments = ", ".join(f"{dtype} %v{n}" for n, dtype in enumerate(parameters))
    call = f"""
  store i32 %t, ptr @gw.at.tid
  call void {kernel}({arguments})
"""
    declared = f"declare void {kernel}({', '.join(parameters)})"
    return "\n".join([declared, for_each_thread("gw.all", "ptr %parameters, ", call, loads)])
