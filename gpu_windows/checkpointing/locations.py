"""Where a checkpoint is: from a path or a URL to its files."""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.object_files import ObjectFiles
from gpu_windows.checkpointing.object_stores import SCHEMES, import_obstore, parse_url
from gpu_windows.checkpointing.store_options import Setting, find_options
from gpu_windows.errors import CheckpointError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_RULE = (
    "a checkpoint is on a disk that the driver and all executors reach by its path, or in a store "
    "of objects"
)
#: Schemes that are not taken, and what to do.
_REFUSED = {
    "hdfs": "HDFS has no public call that creates a file only where none is: mount a disk (NFS), "
    "or take s3a://, gs:// or abfss://",
    "dbfs": "say where the files are: s3://, gs:// or abfss://",
    "wasbs": "say abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER",
    "wasb": "say abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER",
}
_OTHER = f"take a path, or a URL that begins with {', '.join(f'{scheme}://' for scheme in SCHEMES)}"


def _no_setting(name: str) -> None:
    """Return the value of a setting where there is no session."""
    del name


def open_checkpoint(
    checkpoint: str | PathLike[str], setting: Setting = _no_setting
) -> CheckpointFiles:
    """Return the files of a checkpoint. Nothing is read or written yet.

    Parameters
    ----------
    checkpoint : str or os.PathLike
        A path, or a URL.
    setting : callable, optional
        Returns what the session has under one of Hadoop's names: credentials, endpoints. Default:
        only the environment tells them.

    Raises
    ------
    CheckpointError
        If its scheme is not taken, the URL names no folder in a bucket, or the extra ``remote`` is
        not installed.
    """
    text = os.fspath(checkpoint)
    match = _SCHEME.match(text)
    scheme = "" if match is None else match[1].lower()
    if scheme in SCHEMES:
        url = parse_url(text)
        import_obstore()
        return ObjectFiles(str(url), find_options(url, setting))
    if scheme not in ("", "file"):
        advice = _REFUSED.get(scheme, _OTHER)
        raise CheckpointError(f"{_RULE}: {advice}", value=text)
    path = url2pathname(urlsplit(text).path) if scheme else text
    return LocalFiles(str(Path(path).absolute()))
