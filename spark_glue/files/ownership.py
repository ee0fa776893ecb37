"""Ownership of a path of results: which query may write there, and in which generation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from gpu_windows.commits.records import OWNERS, Commit, Owner, blocks_from, read_owners
from gpu_windows.errors import OutputError
from gpu_windows.runners.sink import SinkQuery
from gpu_windows.spark_glue.files.marker_files import (
    files_matching,
    files_of,
    literal,
    read_markers,
    write_marker,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How names of data files end.
_DATA_FILES = ("avro", "csv", "gz", "json", "jsonl", "orc", "parquet", "txt")


def owners(session: SparkSession, path: str) -> list[Owner]:
    """Return the queries that wrote to a path; the last one owns it."""
    return read_owners(read_markers(session, f"{literal(path)}/{OWNERS}"))


def check_claim(query: SinkQuery, path: str, *, takes_over: bool) -> Owner:
    """Return the owner that a path would have if a query were started on it; change nothing.

    Parameters
    ----------
    query : SinkQuery
        Its identity is compared, and the schemas of its outputs.
    path : str
        Where a query is about to write.
    takes_over : bool
        Whether the query may take over a path of another checkpoint.

    Raises
    ------
    OutputError
        If it belongs to another query, or holds other columns; a query may have more than before.
        If no query has written there and data files lie there, such as those that it reads.
    """
    schemas = {name: schema.json() for name, schema in query.schemas.items()}
    identity = query.identity
    found = owners(query.session, path)
    if not found:
        _check_no_data(query.session, path)
        return Owner(0, identity, schemas)
    last = found[-1]
    if last.is_bounded:
        rule = "the path holds what write_parquet has written: a stream writes to another one"
        raise OutputError(rule, value=path)
    if last.query != identity and not takes_over:
        rule = (
            "the path holds results of a query with another checkpoint: write to another path, or "
            "take it over by ParquetSink(path, takes_over=True), after which that query may not"
        )
        raise OutputError(rule, value=path)
    written = _last_written(query.session, path, found)
    if written is not None:
        _check_columns(written.schemas, schemas, may_grow=written.query == identity)
    is_same = last.query == identity and _all_columns(last.schemas) == _all_columns(schemas)
    return last if is_same else Owner(last.generation + 1, identity, schemas)


def _check_no_data(session: SparkSession, path: str) -> None:
    """Raise `OutputError` if data files of others lie in a folder; folders in it do not count."""
    names = ",".join(f"*.{ending}" for ending in _DATA_FILES)
    found = files_matching(session, f"{literal(path)}/{{{names}}}")
    if found:
        rule = "the path holds files that no query of gpu_windows has written: choose another one"
        raise OutputError(rule, value=min(found))


def _last_written(session: SparkSession, path: str, found: Sequence[Owner]) -> Owner | None:
    """Return the owner of the newest generation with results, or None."""
    for owner in reversed(found):
        if read_markers(session, f"{literal(path)}/{blocks_from(owner.generation, 0)}"):
            return owner
    return None


def claim(query: SinkQuery, path: str, owner: Owner) -> None:
    """Write the owner that `check_claim` returned to a path."""
    session = query.session
    write_marker(session, f"{path}/{owner.folder}", owner.text)
    check_owns(session, path, owner)


def check_owns(session: SparkSession, path: str, owner: Owner) -> None:
    """Raise `OutputError` if the path is another query's."""
    found = owners(session, path)
    if not found or found[-1] != owner:
        rule = "a query of another checkpoint has taken over the path, or it was moved"
        raise OutputError(rule, value=path)


def check_not_taken_over(session: SparkSession, path: str, owner: Owner) -> None:
    """Raise `OutputError` if a later generation has begun; this lists names and reads no file."""
    files = files_of(session, f"{literal(path)}/{OWNERS}")
    if any(f"/{owner.next_folder}/" in file for file in files):
        raise taken_over(path)


def taken_over(path: str) -> OutputError:
    """Return the error of a path that is another query's."""
    return OutputError("a query of another checkpoint has taken over the path", value=path)


def find_commit(session: SparkSession, path: str, owner: Owner, number: int) -> Commit | None:
    """Return the commit of a micro-batch that the query has written before, in any generation.

    Raises
    ------
    OutputError
        If it has written later ones: then the checkpoint is older than the results, and what it
        would write under their numbers need not be the same.
    """
    own = [each for each in owners(session, path) if each.query == owner.query]
    texts = [
        text
        for each in own
        for text in read_markers(session, f"{literal(path)}/{blocks_from(each.generation, number)}")
    ]
    commits = [commit for text in texts if (commit := Commit.from_text(text)).number >= number]
    later = max((commit.number for commit in commits), default=number)
    if later > number:
        rule = (
            f"the checkpoint continues with micro-batch {number}, and the path holds results up to "
            f"micro-batch {later}: the checkpoint is an older copy. Write to another path"
        )
        raise OutputError(rule, value=path)
    return next(iter(commits), None)


def _check_columns(before: Mapping[str, str], now: Mapping[str, str], *, may_grow: bool) -> None:
    """Raise `OutputError` if columns have changed; new ones are allowed if ``may_grow``."""
    for output, schema in now.items():
        was, is_ = (_columns(text) for text in (before.get(output), schema))
        added = [name for name, _ in is_ if name not in dict(was)]
        if was != [each for each in is_ if each[0] not in added or not may_grow]:
            rule = (
                f"a path holds rows of the same columns: its output {output} has "
                f"{_describe_schema(before.get(output))}"
            )
            raise OutputError(rule, value=_describe_schema(schema))


def _all_columns(schemas: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    return {output: _columns(schema) for output, schema in schemas.items()}


def _columns(schema: str | None) -> list[tuple[str, str]]:
    """Return names and types."""
    if schema is None:
        return []
    fields = StructType.fromJson(json.loads(schema)).fields
    return [(field.name, field.dataType.simpleString()) for field in fields]


def _describe_schema(schema: str | None) -> str:
    return "nothing" if schema is None else StructType.fromJson(json.loads(schema)).simpleString()
