"""Checks of the GPU: the driver and its devices, the CUDA packages, and what would be chosen."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

from gpu_windows.doctor.finding import (
    Finding,
    fail,
    installed_version,
    ok,
    parse_version,
    run_check,
    show_versions,
    warn,
)
from gpu_windows.errors import DeviceUnavailableError

#: Packages that CUDA kernels import; each has a build for every major version of CUDA.
PACKAGES = ("numba-cuda", "cupy", "pylibcudf", "rmm")

_NAME_OF_MAJOR = re.compile(r"-(?:cu|cuda)(\d+)x?$")
_COMPILERS = ("nvidia-nvvm", "nvidia-cuda-nvcc-cu12")  # of CUDA 13 and 12
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR


@dataclass(frozen=True)
class Device:
    """A CUDA device.

    Parameters
    ----------
    name : str
        As the driver gives it, such as "NVIDIA H200".
    capability : (int, int)
        Its compute capability.
    memory : int
        In bytes.
    """

    name: str
    capability: tuple[int, int]
    memory: int


@dataclass(frozen=True)
class Driver:
    """The CUDA driver.

    Parameters
    ----------
    cuda : (int, int)
        The newest version of CUDA that it runs.
    devices : tuple of Device
        The ones that ``CUDA_VISIBLE_DEVICES`` lets through.
    """

    cuda: tuple[int, int]
    devices: tuple[Device, ...]


class _DriverError(Exception):
    """A call of the driver that did not return CUDA_SUCCESS."""


def find_driver() -> Driver | str:
    """Ask the CUDA driver, which needs no package; return the reason if it does not answer.

    Makes no CUDA context.
    """
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1)"
    version, count = ctypes.c_int(), ctypes.c_int()
    try:
        _call(library, "cuInit", 0)
        _call(library, "cuDriverGetVersion", ctypes.byref(version))
        _call(library, "cuDeviceGetCount", ctypes.byref(count))
        devices = tuple(_device(library, number) for number in range(count.value))
    except _DriverError as error:
        return f"a driver is installed, but {error}"
    return Driver((version.value // 1000, version.value % 1000 // 10), devices)


def check_gpu(driver: Driver | str, visible: str | None) -> Finding:
    """Check the driver and its devices.

    Parameters
    ----------
    driver : Driver or str
        As `find_driver` returns it.
    visible : str, optional
        ``CUDA_VISIBLE_DEVICES``; None if unset.
    """
    limits = "" if visible is None else f"; CUDA_VISIBLE_DEVICES={visible!r}"
    if isinstance(driver, str):
        found = f"none: {driver}{limits}"
        if driver.startswith("no NVIDIA"):
            return ok("GPU", found)
        if visible is not None:
            return warn("GPU", found, "unset CUDA_VISIBLE_DEVICES, or name a device in it")
        return warn("GPU", found, "nvidia-smi says what the driver lacks")
    if not driver.devices:
        mend = "unset CUDA_VISIBLE_DEVICES, or look at nvidia-smi"
        return warn("GPU", f"no device{limits}", mend)
    devices = ", ".join(
        f"{device.name} (sm_{device.capability[0]}{device.capability[1]}, "
        f"{device.memory / 2**30:.0f} GiB)"
        for device in driver.devices
    )
    return ok("GPU", f"{devices}; driver for CUDA {driver.cuda[0]}.{driver.cuda[1]}{limits}")


def cuda_packages() -> dict[str, str]:
    """Return the installed distributions of `PACKAGES`, by name, with their versions."""
    found = {}
    for distribution in metadata.distributions():
        name = (distribution.name or "").lower()
        if name in PACKAGES or _NAME_OF_MAJOR.sub("", name) in PACKAGES:
            found[name] = distribution.version
    return dict(sorted(found.items()))


def check_packages(packages: Mapping[str, str], driver: Driver | str) -> Finding:
    """Check that the CUDA packages are all there and of the driver's major version of CUDA.

    Parameters
    ----------
    packages : mapping of str to str
        As `cuda_packages` returns them.
    driver : Driver or str
        As `find_driver` returns it.
    """
    name, found = "CUDA packages", show_versions(packages) or "none"
    majors = {int(match[1]) for match in map(_NAME_OF_MAJOR.search, packages) if match}
    if len(majors) > 1:
        mend = "pip uninstall the ones of one of the two versions"
        return fail(name, f"{found}: of several versions of CUDA ({_join(majors)})", mend)
    if isinstance(driver, str):
        return ok(name, f"{found}; not needed without a GPU")
    mend = f"pip install 'gpu-windows[cu{driver.cuda[0]}]'"
    if any(major > driver.cuda[0] for major in majors):
        found = f"{found}: for CUDA {_join(majors)}, newer than the driver"
        return fail(name, found, f"pip uninstall {' '.join(packages)}; {mend}")
    old = [why for package in packages if (why := _why_too_old(package, packages[package]))]
    if old:
        return fail(name, f"{found}: {old[0]}", f"{mend} --upgrade")
    there = {_NAME_OF_MAJOR.sub("", package) for package in packages}
    missing = [package for package in PACKAGES if package not in there]
    if missing:
        return warn(name, f"{found}; missing: {', '.join(missing)}", mend)
    return ok(name, found)


def check_nvvm(compilers: Mapping[str, str], driver: Driver | str) -> Finding:
    """Check that the compiler of kernels is no newer than the driver, which refuses its PTX.

    Parameters
    ----------
    compilers : mapping of str to str
        Distributions that carry NVVM, with their versions.
    driver : Driver or str
        As `find_driver` returns it.
    """
    found = show_versions(compilers) or "none"
    if isinstance(driver, str):
        return ok("NVVM", f"{found}; not needed without a GPU")
    limit = f"{driver.cuda[0]}.{driver.cuda[1]}"
    if not compilers:
        mend = f"pip install 'numba-cuda[cu{driver.cuda[0]}]'"
        return warn("NVVM", "no package has it; a CUDA toolkit may", mend)
    for package, version in compilers.items():
        if (*parse_version(version), 0, 0)[:2] > driver.cuda:
            mend = f"pip install '{package}=={limit}.*'"
            found = f"{found}, newer than the driver's CUDA {limit}, which may refuse its PTX"
            return warn("NVVM", found, mend)
    return ok("NVVM", f"{found}; the driver runs CUDA {limit}")


def check_backend(driver: Driver | str) -> Finding:
    """Report where kernels run with ``device="auto"``, and why."""
    from gpu_windows.kernels import backend

    try:
        selected = backend.probe(backend.select("auto"))
    except DeviceUnavailableError as error:
        return fail("Kernels run on", f"nothing: {error}", "see the lines about CUDA")
    found = f"{selected.name}: {selected.reason}"
    if selected.name == "cpu" and isinstance(driver, Driver) and driver.devices:
        return warn("Kernels run on", found, "see the lines about CUDA: there is a GPU")
    return ok("Kernels run on", found)


def gpu_findings() -> list[Finding]:
    """Run every check of this module."""
    driver = find_driver()
    versions = {name: found for name in _COMPILERS if (found := installed_version(name))}
    return [
        check_gpu(driver, os.environ.get("CUDA_VISIBLE_DEVICES")),
        check_packages(cuda_packages(), driver),
        check_nvvm(versions, driver),
        run_check("Kernels run on", lambda: check_backend(driver)),
    ]


def _why_too_old(package: str, version: str) -> str | None:
    """Return why kernels do not run with a version of a package, or None."""
    from gpu_windows.kernels.cuda.library import why_too_old

    return why_too_old(version) if _NAME_OF_MAJOR.sub("", package) == "cupy" else None


def _join(majors: set[int]) -> str:
    return " and ".join(map(str, sorted(majors)))


def _device(library: ctypes.CDLL, number: int) -> Device:
    handle, memory = ctypes.c_int(), ctypes.c_size_t()
    major, minor = ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    _call(library, "cuDeviceGet", ctypes.byref(handle), number)
    _call(library, "cuDeviceGetName", name, len(name), handle)
    _call(library, "cuDeviceGetAttribute", ctypes.byref(major), _MAJOR, handle)
    _call(library, "cuDeviceGetAttribute", ctypes.byref(minor), _MINOR, handle)
    _call(library, "cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
    return Device(name.value.decode(), (major.value, minor.value), memory.value)


def _call(library: ctypes.CDLL, function: str, *arguments: object) -> None:
    status = getattr(library, function)(*arguments)
    if status:
        raise _DriverError(f"{function} returned CUDA error {status}")
