"""Files of a scan: their paths, and checks that they have not changed since the listing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from gpu_windows.checkpointing.byte_ranges import RangeReader
from gpu_windows.checkpointing.object_stores import (
    SCHEMES,
    ObjectStore,
    Options,
    open_store,
    parse_url,
    store_errors,
)
from gpu_windows.checkpointing.store_options import Setting, find_options
from gpu_windows.errors import ScanError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
#: Concurrent requests of a listing.
_REQUESTS = 32
#: Retries of a request to a store.
_RETRIES = 5
_UNREADABLE = "a file of a scan is there, and may be read"


@dataclass(frozen=True)
class ScannedFile:
    """A file as it was when it was listed.

    Parameters
    ----------
    path : str
        On a disk; or a URL in a store of objects.
    length : int
        Bytes.
    version : str
        Changes when the file is written again: the time of its last change in nanoseconds, or the
        version in the object store.
    values : tuple of str or None
        Of the partition columns, as strings of its path.
    """

    path: str
    length: int
    version: str
    values: tuple[str | None, ...] = ()


def path_of(uri: str) -> str:
    """Return the path of a file on a disk, or its URL, for the URI of Spark.

    Raises
    ------
    ScanError
        If it is in a store that Arrow does not read from.
    """
    if _SCHEME.match(uri) is None:
        return uri
    scheme, _, rest = uri.partition(":")
    if scheme == "file":
        return unquote(urlsplit(uri).path)
    if scheme in SCHEMES:
        return f"{scheme}:{unquote(rest)}"
    raise ScanError(f"files of {scheme}:// are read by Spark", value=uri)


def path_of_hadoop(text: str) -> str:
    """Return the path of a file on a disk, or its URL, for the unquoted path of Hadoop.

    Raises
    ------
    ScanError
        If it is in a store that Arrow does not read from.
    """
    return path_of(f"{text.partition(':')[0]}:{quote(text.partition(':')[2])}")


def root_of(path: str) -> str:
    """Return the absolute path of a scanned folder or file, or its URL; see `path_of`."""
    plain = path_of(path) if _SCHEME.match(path) else path
    return plain if is_object(plain) else str(Path(plain).absolute())


def list_files(
    paths: Iterable[str],
    values: Callable[[str], tuple[str | None, ...]],
    options: Options = (),
) -> tuple[ScannedFile, ...]:
    """Return the files that are not empty, with their current versions.

    Parameters
    ----------
    paths : iterable of str
        See `path_of`.
    values : callable
        Returns the values of the partition columns of a path.
    options : Options
        Of the store of objects.

    Raises
    ------
    ScanError
        If a file is missing.
    """

    def look(path: str) -> ScannedFile:
        length, version = _stat(path, options)
        return ScannedFile(path, length, version, values(path))

    every = list(paths)
    if every and is_object(every[0]):
        with ThreadPoolExecutor(_REQUESTS) as pool:
            found = list(pool.map(look, every))
    else:
        found = [look(path) for path in every]
    return tuple(file for file in found if file.length)


def list_objects(url: str) -> list[str]:
    """Return the URLs of the objects below one, in the order of their names."""
    store, prefix = _store(url, ())
    place = url.removesuffix("/").removesuffix(prefix)
    with store_errors(url, ()):
        names = [each["path"] for page in store.list(prefix) for each in page]
    return [f"{place}{name}" for name in sorted(names)]


def has_objects(url: str, ending: str, options: Options = ()) -> bool:
    """Whether there are objects below a URL whose names have an ending."""
    store, prefix = _store(url, options)
    with store_errors(url, options):
        pages = store.list(f"{prefix}/")
        return any(each["path"].endswith(ending) for page in pages for each in page)


def open_file(file: ScannedFile, options: Options = ()) -> Any:
    """Open a file for reading.

    Raises
    ------
    ScanError
        If it is missing, or has changed since it was listed.
    """
    opened = _open(file, options)
    check_file(file, options)  # after opening, because an open file on a disk stays as it is
    return opened


def check_file(file: ScannedFile, options: Options = ()) -> None:
    """Raise `ScanError` if a file is missing, or has changed since it was listed."""
    if _stat(file.path, options) != (file.length, file.version):
        rule = "a file has changed since it was listed: scan the folder again"
        raise ScanError(rule, value=file.path)


def store_options(path: str, setting: Setting) -> Options:
    """Return a session's options for the object store of a path; none for a disk."""
    return find_options(parse_url(path), setting) if is_object(path) else ()


def is_object(path: str) -> bool:
    """Whether a path is a URL in a store of objects."""
    return path.partition("://")[0] in SCHEMES and "://" in path


def _store(url: str, options: Options) -> tuple[ObjectStore, str]:
    parsed = parse_url(url)
    return open_store(parsed, options, _RETRIES), parsed.path


def _open(file: ScannedFile, options: Options) -> Any:
    if is_object(file.path):
        store, key = _store(file.path, options)

        def read(begin: int, length: int) -> Any:
            with store_errors(file.path, options):
                return store.get_range(key, start=begin, length=length)

        return pa.PythonFile(RangeReader(read, file.length), "r")
    try:
        return pa.OSFile(file.path)
    except OSError as error:
        raise ScanError(_UNREADABLE, value=f"{file.path}: {error}") from error


def _stat(path: str, options: Options) -> tuple[int, str]:
    """Return the length of a file and its version."""
    try:
        if is_object(path):
            store, key = _store(path, options)
            with store_errors(path, options):
                head = store.head(key)
            return head["size"], head["e_tag"] or str(head["last_modified"])
        status = Path(path).stat()
    except OSError as error:
        raise ScanError(_UNREADABLE, value=f"{path}: {error}") from error
    return status.st_size, str(status.st_mtime_ns)
