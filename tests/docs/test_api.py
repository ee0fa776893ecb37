"""The reference has every public name once, and no other."""

from __future__ import annotations

import re
from collections import Counter

import gpu_windows as gw
from tests.docs.pages import DOCS

_NAMED = re.compile(r"^::: gpu_windows\.((?:functions\.|testing\.|typing\.)?\w+)$", re.MULTILINE)
#: A module whose classes are all public.
_MODULES = {"errors"}


def test_every_public_name_is_in_the_reference_once() -> None:
    named: Counter[str] = Counter()
    for page in (DOCS / "api").glob("*.md"):
        named.update(_NAMED.findall(page.read_text()))
    public = {*gw._NAMES.homes, *_MODULES}
    for module in (gw.functions, gw.testing, gw.typing):
        name = module.__name__.removeprefix("gpu_windows.")
        public |= {f"{name}.{each}" for each in module.__all__}
    assert public - named.keys() == set(), "not in docs/api"
    assert named.keys() - public == set(), "in docs/api, but not public"
    assert [name for name, count in named.items() if count > 1] == []
