"""The notebooks of the documentation: run anew, with their outputs.

``python -m tests.docs.notebooks [NAME...]`` runs them and keeps what they show.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.docs.pages import DOCS

FOLDER = DOCS / "notebooks"
#: Seconds that a cell may take.
_TIMEOUT = 300


def notebooks() -> list[Path]:
    """Return all notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> Any:
    """Run a notebook from its first cell on; return it with the outputs of this run.

    What goes to stderr is left out: the JVM's greetings.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell raises.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # of frozen modules: a warning
    client = NotebookClient(
        notebook, timeout=_TIMEOUT, kernel_name="python3", record_timing=False, resources={}
    )
    client.execute(cwd=str(path.parent))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in _joined(cell.outputs) if o.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """Put what one stream wrote in several pieces together: how it is cut is chance."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            last["text"] += output.text
        else:
            joined.append(output)
    return joined


def shown(notebook: Any) -> list[list[str]]:
    """Return what each cell shows, as text."""
    return [
        [
            o["text"] if o.output_type == "stream" else o["data"].get("text/plain", "")
            for o in outputs
        ]
        for outputs in (cell.get("outputs", []) for cell in notebook.cells)
    ]


def main(names: list[str]) -> None:
    """Run notebooks and write them with their outputs."""
    import nbformat

    for path in notebooks():
        if not names or path.stem in names:
            nbformat.write(executed(path), path)


if __name__ == "__main__":
    main(sys.argv[1:])
