"""What Spark notes of a micro-batch before it runs: which rows it takes, and when."""

from __future__ import annotations

import json

#: Where Spark notes it, in a checkpoint.
FOLDER = "offsets"
_PLANNED_AT = "batchTimestampMs"


def planned_at(record: bytes) -> int:
    """Return when Spark planned a micro-batch, in milliseconds since 1970.

    Parameters
    ----------
    record : bytes
        ``offsets/NUMBER``: its second line has settings and times, as JSON.
    """
    return int(json.loads(record.decode().splitlines()[1])[_PLANNED_AT])
