"""Options of tables in hints of scripts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

import gpu_windows as gw
from gpu_windows.errors import SqlError

OTHER = "/*+ OPTIONS('path' = '{b}') */"
#: Queries, and the values of their column k in any order.
RESULTS = {
    "SELECT k FROM t": "ab",
    f"SELECT k FROM t {OTHER}": "c",
    f"SELECT x.k FROM t {OTHER.lower().replace(' ', '')} AS x WHERE x.n > 1": "c",
    f"SELECT t.k FROM t {OTHER} UNION ALL SELECT k FROM t": "abc",
    f"SELECT t.k FROM t {OTHER} UNION ALL SELECT u.k FROM t {OTHER} AS u": "cc",
    f"SELECT k FROM t UNION ALL SELECT k FROM default_catalog.default_database.`T`\n{OTHER}": "abc",
    f"CREATE VIEW v AS SELECT * FROM t{OTHER}; SELECT k FROM v": "c",
    "SELECT k FROM t /*+ OPTIONS() */": "ab",
}
#: A script in which # is before the place of the error, and words of the rule.
MISTAKES = {
    "SELECT k FROM (SELECT * FROM t) #/*+ OPTIONS('path' = 'x') */": "follow the name of a table",
    "SELECT #/*+ OPTIONS('path' = 'x') */ k FROM t": "follow the name of a table",
    "SELECT k FROM t /*+ OPTIONS(#path = 'x') */": "single quotes",
    "SELECT k FROM t /*+ OPTIONS('path' = 'x')#, BROADCAST(t) */": "OPTIONS alone",
    "SELECT k FROM t /*+ OPTIONS('path' = 'x', #'path' = 'y') */": "given twice",
    "CREATE VIEW v AS SELECT * FROM t; SELECT k FROM v #/*+ OPTIONS('path' = 'x') */": "of tables",
    "INSERT INTO t #/*+ BROADCAST(t) */ SELECT * FROM t": "a table takes the hint OPTIONS",
    "INSERT INTO t /*+ OPTIONS('path' = 'x') */ SELECT * FROM t;"
    "INSERT INTO #t /*+ OPTIONS('path' = 'y') */ SELECT * FROM t": "the same OPTIONS",
}


def table(path: Path) -> str:
    return (
        f"CREATE TABLE t (k STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{path}', "
        "'format' = 'csv');\n"
    )


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    for name, values in (("a", ["a", "b"]), ("b", ["c"])):
        (tmp_path / name).mkdir()
        rows = pa.table({"k": values, "n": range(2, 2 + len(values))})
        csv.write_csv(rows, tmp_path / name / "x.csv", csv.WriteOptions(include_header=False))
    return {"a": tmp_path / "a", "b": tmp_path / "b"}


@pytest.mark.parametrize("query", RESULTS)
def test_a_table_has_them(query: str, folders: dict[str, Path]) -> None:
    text = table(folders["a"]) + query.replace("{b}", str(folders["b"]))
    found = gw.sql_script(text).results()["result"]
    assert sorted(found["k"].to_pylist()) == [*RESULTS[query]]


def test_a_target_has_them(folders: dict[str, Path], tmp_path: Path) -> None:
    text = f"""
        {table(folders["a"])}
        CREATE TABLE u WITH ('connector' = 'filesystem', 'path' = '/none', 'format' = 'parquet')
        LIKE t (EXCLUDING OPTIONS);
    """
    hint = f"/*+ OPTIONS('path' = '{tmp_path}/out') */"
    gw.sql_script(f"{text} INSERT INTO u {hint} SELECT * FROM t").write()
    found = gw.sql_script(f"{text} SELECT * FROM u {hint}").results()["result"]
    assert found.to_pydict() == {"k": ["a", "b"], "n": [2, 3]}


@pytest.mark.parametrize("query", MISTAKES)
def test_mistakes_have_their_place(query: str, folders: dict[str, Path]) -> None:
    with pytest.raises(SqlError, match=MISTAKES[query]) as caught:
        gw.sql_script(table(folders["a"]) + query.replace("#", "")).outputs()
    assert (caught.value.line, caught.value.position) == (2, query.index("#") + 1)


def test_names_have_the_default_catalog_and_database(folders: dict[str, Path]) -> None:
    text = f"""
        USE CATALOG default_catalog; USE default_database; USE default_catalog.default_database;
        {table(folders["a"]).replace("TABLE t", "TABLE default_catalog.default_database.t")}
        CREATE VIEW default_database.v AS
        SELECT * FROM `default_catalog`.`default_database`.`t` WHERE n > 2;
        SELECT v.k FROM default_catalog.default_database.v
    """
    assert gw.sql_script(text).results()["result"].to_pydict() == {"k": ["b"]}
