"""The text of Spark's plans: the only public place that names what a DataFrame is made of."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: `redirect_stdout` replaces what all threads print to, so one plan is read at a time.
_LOCK = Lock()


class _ThreadCapture:
    """Captures what the thread that created it prints, until `stop`; passes on other output.

    After `stop` everything is passed on, because another thread may restore it as its output.
    """

    def __init__(self, others: TextIO) -> None:
        self.text = io.StringIO()
        self._others = others
        self._thread: int | None = get_ident()

    def write(self, text: str, /) -> int:
        """Capture the text of this thread; pass that of others on."""
        own = get_ident() == self._thread
        return self.text.write(text) if own else self._others.write(text)

    def flush(self) -> None:
        """Flush the original output."""
        self._others.flush()

    def stop(self) -> None:
        """Stop capturing."""
        self._thread = None

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the original output, such as its encoding or buffer."""
        return getattr(self._others, name)


def read_plan_text(frame: DataFrame) -> str:
    """Return what ``frame.explain("extended")`` prints: parsed, analyzed, optimized, physical.

    It holds paths and options of sources, which may be secrets: store only a digest of it.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        In batch or as a stream, of a session or of Spark Connect.

    Returns
    -------
    str
        Sections that begin with ``== Analyzed Logical Plan ==`` and alike.
    """
    with _LOCK:
        capture = _ThreadCapture(sys.stdout)
        try:
            with redirect_stdout(cast("TextIO", capture)):
                frame.explain(mode="extended")
        finally:
            capture.stop()
    return capture.text.getvalue()
