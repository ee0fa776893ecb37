"""Opens the files of a checkpoint by its path or URL."""

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
    "a checkpoint must be on a disk that the driver and all executors reach by its path, or in an "
    "object store"
)
#: Unsupported schemes, and what to use instead.
_REFUSED = {
    "hdfs": "HDFS has no public call to create a file only if there is none: mount a disk (NFS), "
    "or use s3a://, gs:// or abfss://",
    "dbfs": "use the URL of the underlying store: s3://, gs:// or abfss://",
    "wasbs": "use abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER",
    "wasb": "use abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER",
}
_OTHER = f"take a path, or a URL that begins with {', '.join(f'{scheme}://' for scheme in SCHEMES)}"


def open_checkpoint(
    checkpoint: str | PathLike[str], setting: Setting | None = None
) -> CheckpointFiles:
    """Return the files of a checkpoint. Nothing is read or written yet.

    Parameters
    ----------
    checkpoint : str or os.PathLike
        A path, or a URL.
    setting : callable, optional
        Returns the session's value of a Hadoop setting: credentials, endpoints. Default: only the
        environment has them.

    Raises
    ------
    CheckpointError
        If its scheme is not supported, the URL does not name a folder in a bucket, or the extra
        ``remote`` is not installed.
    """
    text = os.fspath(checkpoint)
    match = _SCHEME.match(text)
    scheme = "" if match is None else match[1].lower()
    if scheme in SCHEMES:
        url = parse_url(text)
        import_obstore()
        return ObjectFiles(str(url), find_options(url, setting or (lambda name: None)))
    if scheme not in ("", "file"):
        advice = _REFUSED.get(scheme, _OTHER)
        raise CheckpointError(f"{_RULE}: {advice}", value=text)
    path = url2pathname(urlsplit(text).path) if scheme else text
    return LocalFiles(str(Path(path).absolute()))
