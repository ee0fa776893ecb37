"""A kernel's code for NVVM as code for this CPU."""

from __future__ import annotations

import importlib
import re
from typing import Any, NamedTuple

from gpu_windows.kernels.cuda import compiler

#: What a type may be that a pointer points to, in the text of LLVM of old; some lines have several.
_POINTER = re.compile(
    r"(?:i\d+|double|float|ptr|\{[^{}]*\}|\[\d+ x [^\[\]]*\]|void \([^()]*\))"
    r"( addrspace\(\d+\))?\*"
)
_REGISTER = re.compile(r"llvm\.nvvm\.read\.ptx\.sreg\.(n?(?:tid|ctaid)\.[xyz])")
_METADATA = re.compile(r", !(?:range|prof) !\d+")
_KERNEL = re.compile(r"^define void @(\"?[\w.$]+\"?)\((.*)\)", re.MULTILINE)
_SHARED = re.compile(r"^@(\"?[\w.$]+\"?) = addrspace\(3\) global (\[\d+ x \w+\])", re.MULTILINE)
#: Functions of CUDA's library, and what the C library calls them.
_LIBRARY = {"__nv_fabs": "fabs", "__nv_isnand": "__isnan", "__nv_ldexp": "ldexp"}


class HostCode(NamedTuple):
    """A kernel's modules for this CPU.

    Parameters
    ----------
    modules : tuple of str
        Texts of LLVM. They call `gw.tid.x` and so on, and `gw.barrier`.
    name : str
        Of the kernel, as the text has it.
    parameters : tuple of str
        The types of its parameters: ``ptr``, ``i64``, ``double``.
    shared : tuple of (str, str)
        Names and types of the arrays that the threads of a block share.
    """

    modules: tuple[str, ...]
    name: str
    parameters: tuple[str, ...]
    shared: tuple[tuple[str, str], ...]

    @property
    def waits(self) -> bool:
        """Whether threads wait for each other."""
        return any("gw.barrier" in module for module in self.modules)


def host_code(function: Any, signature: Any, capability: tuple[int, int] = (9, 0)) -> HostCode:
    """Compile a kernel as for a device, and return its code before NVVM, for this CPU."""
    library = _library(function, signature, capability)
    modules = tuple(_for_this_cpu(str(module)) for module in library.modules)
    found = _KERNEL.search(modules[0])
    assert found is not None, "the first module is the kernel's"
    parameters = tuple(part.split()[0] for part in found[2].split(", "))
    shared = tuple((m[1], m[2]) for module in modules for m in _SHARED.finditer(module))
    return HostCode(modules, found[1], parameters, shared)


def _library(function: Any, signature: Any, capability: tuple[int, int]) -> Any:
    numba_compiler: Any = importlib.import_module("numba.cuda.compiler")
    with compiler.compiling_for(capability):
        library, _ = numba_compiler._compile_pyfunc_with_fixup(
            function, signature, debug=None, lineinfo=False, device=False, fastmath=False,
            cc=capability, opt=None, abi="numba", abi_info=None, forceinline=False,
            launch_bounds=None, lto=False,
        )  # fmt: skip
    return library


def _for_this_cpu(text: str) -> str:
    """Return a module's text without what is the device's."""
    lines = (line for line in text.split("\n") if not line.startswith(("target", "!")))
    text, count = "\n".join(lines), 1
    while count:  # pointers to pointers
        text, count = _POINTER.subn(lambda found: f"ptr{found[1] or ''}", text)
    text = _METADATA.sub("", text)
    text = _REGISTER.sub(r"gw.\1", text).replace("llvm.nvvm.barrier0", "gw.barrier")
    for name, known in _LIBRARY.items():
        text = text.replace(name, known)
    assert "__nv_" not in text, "a function of CUDA's library that is not known here"
    assert "llvm.nvvm" not in text, "an instruction of the device that is not known here"
    return text
