"""How many examples of a property are tried: a few in CI, 25 times as many in `make nightly`."""

from __future__ import annotations

import os

from hypothesis import settings

_FACTOR = 25 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1


def examples(count: int) -> settings:
    """Return the decorator of a property test that tries ``count`` examples in CI."""
    return settings(max_examples=_FACTOR * count)
