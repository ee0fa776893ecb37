"""Answers of a Flink 2.3 to the texts: ``python -m tests.sql.corpus record``."""

from __future__ import annotations

import json
import subprocess
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.sql.corpus.inputs import Rows, flink_rows
from tests.sql.corpus.texts import FOLDER, Text

_SETUP = FOLDER.parents[1] / "oracle" / "setup.sh"
RECORDED = FOLDER / "recorded"


def rows_of(text: Text) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a text's tables; those of statements are the same for all of them."""
    source = Rows("" if text.created else text.sql)
    return {table.name: source.rows(table) for table in text.tables}


def recorded(kind: str) -> dict[str, Any]:
    """Return what is recorded for the texts of a kind, by their names."""
    file = RECORDED / f"{kind}.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def record(texts: Iterable[Text]) -> dict[str, str]:
    """Ask a Flink, write its answers, and return its errors by the names of texts.

    Raises
    ------
    subprocess.CalledProcessError
        If it could not be started.
    """
    texts = list(texts)
    answers = ask(texts)
    by_kind: dict[str, dict[str, Any]] = {}
    for text in texts:
        found = {"asked": checksum(text), **answers[text.name]}
        by_kind.setdefault(text.kind, {})[text.name] = found
    RECORDED.mkdir(exist_ok=True)
    for kind, found in by_kind.items():
        _write(RECORDED / f"{kind}.json", {**recorded(kind), **found})
    return {name: answer["error"] for name, answer in answers.items() if "error" in answer}


def checksum(text: Text) -> int:
    """Return a number of a text and its rows: an answer to others is out of date."""
    return zlib.crc32(json.dumps(asked_text(text)).encode())


def asked_text(text: Text) -> dict[str, Any]:
    """Return a text with its rows as the oracle's `Texts` reads it."""
    rows = rows_of(text)
    tables = {table.name: flink_rows(table, rows[table.name]) for table in text.tables}
    sql = text.created + text.sql
    return {"name": text.name, "mode": text.mode, "text": sql, "rows": tables}


def ask(texts: Iterable[Text]) -> dict[str, Any]:
    """Return a Flink's answers to texts, by their names.

    Raises
    ------
    subprocess.CalledProcessError
        If it could not be started.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "in.json"), Path(folder, "out.json")
        asked.write_text(json.dumps({"texts": [asked_text(text) for text in texts]}))
        setup = subprocess.run([str(_SETUP), "--quiet"], check=True, text=True, stdout=-1)
        parts = ("lang", "time", "util", "util.concurrent")
        opens = [f"--add-opens=java.base/java.{part}=ALL-UNNAMED" for part in parts]
        java = ["java", "-Xmx1500m", "-XX:+UseSerialGC", *opens, f"-Djava.io.tmpdir={folder}"]
        command = [*java, "-cp", setup.stdout.strip(), "oracle.Texts", str(asked), str(answered)]
        subprocess.run(command, check=True)
        answers: dict[str, Any] = json.loads(answered.read_text())
        return answers


def _write(file: Path, answers: dict[str, Any]) -> None:
    def line(name: str) -> str:
        answer = json.dumps(answers[name], ensure_ascii=False, separators=(",", ":"))
        return f"{json.dumps(name)}: {answer}"

    lines = [line(name) for name in sorted(answers)]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
