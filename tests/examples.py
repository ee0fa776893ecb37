"""How many examples of a property are tried, in which lane."""

from __future__ import annotations

import os

from hypothesis import settings

#: Of a profile of Hypothesis: examples for each that `make check` tries.
_FACTORS = {"sanitizer": 0.1, "quick": 0.2, "ci": 1, "nightly": 25}
#: The quick lane tries no fewer.
_LEAST = 10


def examples(count: int) -> settings:
    """Return the decorator of a property test that tries ``count`` examples in CI.

    The quick lane tries the first fifth of them, `make nightly` 25 times as many; fewer of them
    under compute-sanitizer.
    """
    factor = _FACTORS[os.environ.get("HYPOTHESIS_PROFILE", "ci")]
    return settings(max_examples=max(_LEAST, int(factor * count)))
