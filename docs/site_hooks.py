"""Hooks of MkDocs: pages from outside docs/, links as on GitHub, notebooks.

Pages are written for readers of the repository: links are relative to their file, and may lead out
of docs/. The hooks turn them into links of the site, and fail if a target does not exist.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

#: Files of the repository that are pages of the site, and their names there.
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks_how.md",
}
_DOCS, _NOTEBOOK = "docs/", ".ipynb"
_ROOT = Path(__file__).resolve().parents[1]
_FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2[ ]*$", re.MULTILINE | re.DOTALL)
_CODE_OR_LINK = re.compile(r"`[^`]+`|\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^)\s]+)\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages from outside docs/, and each notebook as a page with its stored outputs."""
    for path, name in OUTSIDE.items():
        files.append(File.generated(config, name, content=(_ROOT / path).read_text()))
    for file in list(files):
        if file.src_uri.endswith(_NOTEBOOK):
            files.remove(file)
            for name, content in _export_notebook(_ROOT / _DOCS / file.src_uri).items():
                uri = posixpath.join(posixpath.dirname(file.src_uri), name)
                files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Turn the links of a page, except those in code, into links of the site."""
    source, parts, end = _in_repository(page.file.src_uri), [], 0
    for fenced in _FENCED.finditer(markdown):
        parts += [
            _replace_links(markdown[end : fenced.start()], source, config.repo_url),
            fenced[0],
        ]
        end = fenced.end()
    return "".join([*parts, _replace_links(markdown[end:], source, config.repo_url)])


def _export_notebook(notebook: Path) -> dict[str, str | bytes]:
    """Return a notebook as Markdown and its pictures, by file name."""
    from nbconvert import MarkdownExporter

    name = notebook.stem
    resources: Any = {"output_files_dir": f"{name}_files", "unique_key": name}
    text, resources = MarkdownExporter().from_filename(str(notebook), resources=resources)
    return {f"{name}.md": text, **resources["outputs"]}


def _in_repository(uri: str) -> str:
    """Return the path of the source file of a page."""
    for path, name in OUTSIDE.items():
        if name == uri:
            return path
    notebook = (_ROOT / _DOCS / uri).with_suffix(_NOTEBOOK)
    return str(notebook.relative_to(_ROOT)) if notebook.exists() else _DOCS + uri


def _replace_links(text: str, source: str, repository: str | None) -> str:
    def replace(match: re.Match[str]) -> str:
        label, target = match[1], match[2]
        if target is None or re.match(r"[a-z]+:|#", target):
            return match[0]
        url = _site_url(target, source, repository)
        return f"[{label}]({url})" if url else label

    return _CODE_OR_LINK.sub(replace, text)


def _site_url(target: str, source: str, repository: str | None) -> str | None:
    """Return the address of a link on the site; None if its target is only in the repository."""
    path, _, anchor = target.partition("#")
    whole = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    fragment = f"#{anchor}" if anchor else ""
    if whole in OUTSIDE:
        uri = OUTSIDE[whole]
    elif whole.startswith(_DOCS):
        uri = whole.removeprefix(_DOCS)
        uri = f"{uri.removesuffix(_NOTEBOOK)}.md" if uri.endswith(_NOTEBOOK) else uri
    elif (_ROOT / whole).exists():
        return f"{repository.rstrip('/')}/blob/main/{whole}{fragment}" if repository else None
    else:
        raise PluginError(f"{source}: there is no {whole}, which it links to")
    here = posixpath.dirname(OUTSIDE.get(source, source.removeprefix(_DOCS)))
    return posixpath.relpath(uri, here or ".") + fragment
