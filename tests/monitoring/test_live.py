"""A view in a notebook is shown again in its place."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_windows.errors import QueryError
from gpu_windows.monitoring import live


def test_a_notebook_shows_the_view_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    display = pytest.importorskip("IPython.display")
    shown: list[str] = []

    class Handle:
        def update(self, page: Any) -> None:
            shown.append(page.data)

    def show(page: Any, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(page.data)
        return Handle()

    monkeypatch.setattr(display, "display", show)
    update = live._notebook_output(live.LiveView("payments", None))
    update()
    assert len(shown) == 2
    assert all("payments" in page and page.startswith("<pre>") for page in shown)


def test_what_is_no_query() -> None:
    with pytest.raises(QueryError, match=r"takes the query that gpu_windows\.write_stream"):
        live.watch(object())  # type: ignore[arg-type]
