"""What process functions declare, whatever they see of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_windows.rich_functions import Closable, GivesAside, declared


class Declares(Closable, GivesAside):
    """What functions over rows of keys declare, and may override."""

    @declared
    def state(self) -> Mapping[str, Any]:
        """State of each key, by name."""
        return {}

    @declared
    def uses_processing_time(self) -> bool:
        """Whether it sets timers of processing time."""
        return False
