"""Compiles kernels and Flink's rules, on first use, with an on-disk cache that is safe to trust.

Numba is imported then, and not before: that takes longer than all else that a process imports.

Numba's own cache does not notice a change in a jitted function that a kernel imports. So the
cache lives in a directory whose name holds a hash of everything a kernel is made of.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from gpu_windows.kernels.argument_types import Type, numba_type
from gpu_windows.kernels.private_folder import NotPrivateError, private_folder
from gpu_windows.kernels.sources import relocate_source, sources

_logger = logging.getLogger(__name__)

#: How functions are compiled for the CPU. Kernels allocate nothing, so nothing needs counting: by
#: Numba's reference counts, which stand between any two uses of an array, the machine is fifty
#: times slower. The option is a private one of Numba; without it kernels are slow, not wrong.
JIT: dict[str, Any] = {"error_model": "numpy", "_nrt": False}

#: How functions are that kernels alone call: none that Python or C could call is made of them.
INNER: dict[str, Any] = {
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    **JIT,
}

#: Environment variable that overrides where compiled kernels are cached.
CACHE_VARIABLE = "GPU_WINDOWS_CACHE_DIR"

#: Where Numba's cache is, is a setting of the whole process.
_COMPILING = threading.Lock()


def compile_rules(
    jit: Callable[[Any], Any], package: Any, others: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the functions of a package of rules compiled with ``jit``, each at its first call.

    Parameters
    ----------
    jit : callable
    package : module
        Its ``COMPILED`` are the modules whose functions see each other compiled.
    others : mapping
        Compiled functions of other packages that they call.
    """
    compiled = dict(others)
    namespaces = [{**vars(module)} for module in package.COMPILED]
    for namespace in namespaces:
        for name, function in namespace.items():
            if isinstance(function, FunctionType) and function.__module__ == namespace["__name__"]:
                compiled[name] = jit(FunctionType(function.__code__, namespace, name))
    for namespace in namespaces:
        namespace.update(compiled)
    return compiled


def specialize(template: Callable[..., Any], name: str, **functions: Any) -> FunctionType:
    """Return a template that calls these functions in the place of its module's of their names."""
    namespace = {**template.__globals__, **functions}
    made = FunctionType(template.__code__, namespace, f"_{name}")
    made.__qualname__ = made.__name__
    return made


class Inner:
    """A function that CPU kernels call: compiled for the first that needs it.

    Parameters
    ----------
    function : callable
        Plain Python; it may call others of this class.
    options : mapping
        Of ``numba.njit``.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.definition = function
        self._options = options

    def __call__(self, *arguments: Any) -> Any:
        """Run the function, compiled."""
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """The function as Numba compiles it."""
        import numba

        return numba.njit(**self._options)(_with_inner_compiled(self.definition))


def inner(**options: Any) -> Callable[[Callable[..., Any]], Inner]:
    """Make an `Inner` of the decorated function."""
    return lambda function: Inner(function, options)


def _with_inner_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that finds compiled what it calls of `Inner`, also in other modules."""
    names, found = function.__code__.co_names, function.__globals__
    compiled = {name: _for_numba(found[name], names) for name in names if name in found}
    made = FunctionType(
        function.__code__,
        {**found, **compiled},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


def _for_numba(value: Any, names: Collection[str]) -> Any:
    """Return what Numba can compile; of a module, the functions of these names."""
    if isinstance(value, Inner):
        return value.dispatcher
    if not isinstance(value, ModuleType):
        return value
    inside = {name: part for name, part in vars(value).items() if name in names}
    if not any(isinstance(part, Inner) for part in inside.values()):
        return value
    module = ModuleType(value.__name__)
    vars(module).update({name: _for_numba(part, ()) for name, part in inside.items()})
    return module


class Kernel:
    """A CPU kernel: compiled for fixed signatures at its first call.

    Parameters
    ----------
    function : callable
        Plain Python, readable as the definition of the kernel.
    signatures : list
        Types of arguments, one tuple each.
    """

    def __init__(self, function: Callable[..., Any], signatures: list[tuple[Type, ...]]) -> None:
        self.definition = function
        self._signatures = signatures
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel."""
        if self._compiled is None:
            self.compile()
        return self._compiled(*arguments)  # type: ignore[misc]

    def compile(self) -> None:
        """Compile, or load from the cache on disk, if that is not done."""
        with compiling_alone(self.definition, "cpu"):
            if self._compiled is None:  # another thread may have done it meanwhile
                import numba

                function = relocate_source(_with_inner_compiled(self.definition), cache_directory())
                signatures = [tuple(map(numba_type, types)) for types in self._signatures]
                self._compiled = numba.njit(signatures, cache=True, nogil=True, **JIT)(function)


def kernel(*signatures: tuple[Type, ...]) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a `Kernel` of the decorated function."""
    return lambda function: Kernel(function, list(signatures))


@contextmanager
def compiling_alone(function: Callable[..., Any], target: str | None) -> Iterator[None]:
    """Let one thread of one process of a machine compile a kernel, of either back end.

    The others wait, and then load it from the cache on disk: Spark's workers all begin at once.
    Once it is there, processes load it at the same time.

    Parameters
    ----------
    function : callable
        Of the kernel.
    target : str or None
        For what it is compiled, as the cache tells its entries apart beside `fingerprint`; None: it
        is not cached, so nobody waits.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    alone = nullcontext() if target is None else run_first_alone(name, target)
    with _COMPILING, _cached_on_disk(), alone:
        yield


@contextmanager
def one_process(name: str) -> Iterator[None]:
    """Let one process of a machine at a time go on.

    The lock ends with the process that holds it. Where there can be none (a file system without
    locks, a cache that was removed), nobody waits.

    Parameters
    ----------
    name : str
        Of what is compiled: a part of a file name.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context((cache_directory() / f"{name}.lock").open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            _logger.warning("each process compiles its kernels for itself: %s", error)
        yield


@contextmanager
def run_first_alone(name: str, target: str) -> Iterator[None]:
    """Let one process of a machine at a time go on, until one has succeeded; then all at once.

    Two processes that compile for different targets write into one index of the cache: they have
    one lock, and each target its own mark that it is done.

    Parameters
    ----------
    name : str
        Of what is compiled: a part of a file name.
    target : str
        For what: a part of a file name.
    """
    done = cache_directory() / f"{name}.{target}.done"
    if not _exists(done):
        with one_process(name):
            if not _exists(done):
                yield
                with suppress(OSError):  # the next process is alone again
                    done.touch()
                return
    yield


def _exists(path: Path) -> bool:
    """Whether a file is there; where the folder cannot be read it is not."""
    try:
        return path.exists()
    except OSError:
        return False


@contextmanager
def _cached_on_disk() -> Iterator[None]:
    """Point Numba's cache to our directory while a kernel is compiled, and back."""
    from numba.core import config

    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_directory())
    try:
        yield
    finally:
        config.CACHE_DIR = before


@cache
def cache_directory() -> Path:
    """Return the directory for compiled kernels, made if it was missing.

    The first of ``$GPU_WINDOWS_CACHE_DIR``, ``$XDG_CACHE_HOME`` or ``~/.cache``, and the
    system's temporary directory that can be written to, by this user alone; else a fresh one.
    """
    configured = os.environ.get(CACHE_VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    own = f"gpu_windows-{os.geteuid()}"
    places = [(home, "gpu_windows"), (tempfile.gettempdir(), own)]
    for base, *names in [(configured,)] if configured else places:
        try:
            directory = private_folder(Path(base), *names, "kernels", fingerprint())
        except NotPrivateError as error:
            _logger.warning("compiled kernels are not kept there, for they are code: %s", error)
        else:
            if directory is not None:
                return directory
    return Path(tempfile.mkdtemp(prefix="gpu_windows-"))


@cache
def fingerprint() -> str:
    """Hash of the sources of kernels and rules, the compiler's versions and the CPU."""
    import llvmlite.binding
    import numba

    digest = hashlib.sha256()
    for name, source in sources():
        digest.update(name.encode() + source)
    cpu = llvmlite.binding.get_host_cpu_name()
    features = llvmlite.binding.get_host_cpu_features().flatten()
    for part in (numba.__version__, llvmlite.__version__, cpu, features):
        digest.update(part.encode())
    return digest.hexdigest()[:16]
