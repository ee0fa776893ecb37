"""Expressions of templates and choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product


def fill(template: str, **choices: Sequence[str] | str) -> Iterator[str]:
    """Yield a template with each combination of choices; a string is choices split at ``|``.

    Examples
    --------
    >>> [*fill("{f}(n)", f="ABS|SIGN")]
    ['ABS(n)', 'SIGN(n)']
    """
    lists = [each.split("|") if isinstance(each, str) else each for each in choices.values()]
    for values in product(*lists):
        yield template.format(**dict(zip(choices, values, strict=True)))
