"""Links of the pages lead somewhere, as GitHub shows them; `make docs` asks that of the site."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import anchors, links, name_of, pages


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    broken = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in anchors(target)
        ):
            broken.append(link)
    assert not broken
