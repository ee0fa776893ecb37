from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.rapids.markdown import report
from tests.rapids.plan import Node, Where, whole_plan
from tests.rapids.queries import QUERIES, TRIALS

PAGE = Path(__file__).parents[2] / "docs" / "rapids_report.md"

#: As it stands in the log, shortened; two reports, as adaptive execution has them.
LOG = """
*Exec <FilterExec> will run on GPU
  *Expression <IsNull> isnull(__counters#28) will run on GPU
  !Exec <MapInArrowExec> cannot run even partially on the GPU because unsupported data types in \
input: BinaryType [__blob#61]; not all expressions can be replaced
    @Expression <AttributeReference> __shard#60L could run on GPU
    *Exec <ProjectExec> will run on GPU
        ^ <UnixMicros> unix_micros(ts#5) will run on GPU via CPU bridge because GPU does not \
currently support the operator class UnixMicros
        ^Expression <Cast> cast(ts#5 as date) will run on GPU via CPU bridge because it avoids \
excess CPU and GPU transfers
        ^Expression <Abs> abs(ts#5) will run on GPU via CPU bridge because it avoids excess CPU \
and GPU transfers

*Exec <MapInArrowExec> will partially run on GPU
  #Exec <InputAdapter> could run on GPU but is going to be removed
"""


def test_nodes_are_read_from_the_report_of_the_whole_plan() -> None:
    filter_, null, crossing, shard, project, micros, cast, absolute = whole_plan(LOG)

    assert [node.depth for node in (filter_, crossing, project, micros)] == [0, 1, 2, 4]
    assert [node.where for node in (filter_, crossing, micros)] == [
        Where.GPU,
        Where.CPU,
        Where.BRIDGE,
    ]
    operators = [node.is_operator for node in (filter_, null, crossing, shard, project)]
    assert operators == [True, False, True, False, True]
    assert micros == Node(
        4,
        "^",
        "Expression",
        "UnixMicros",
        "unix_micros(ts) will run on GPU via CPU bridge because GPU does not currently support the "
        "operator class UnixMicros",
    )
    assert (cast.name, absolute.name) == ("Cast", "Abs")


def test_reasons_come_in_one_order_and_columns_without_numbers() -> None:
    crossing = whole_plan(LOG)[2]

    assert crossing.said.endswith(
        "because not all expressions can be replaced; "
        "unsupported data types in input: BinaryType [__blob]"
    )


def test_a_node_that_python_is_part_of() -> None:
    (node,) = whole_plan("*Exec <MapInArrowExec> will partially run on GPU")

    assert node.where is Where.PARTLY


def test_no_report_is_an_error() -> None:
    with pytest.raises(ValueError, match="must report the plan"):
        whole_plan("Rapids Shuffle Plugin enabled.")


def test_the_page_counts_nodes_and_leaves_out_what_is_said_twice() -> None:
    page = report({"windows": whole_plan(LOG)}, {}, artifact="a", pyspark="4")

    assert "| windows | 2 | 0 | `MapInArrowExec` | `UnixMicros` |" in page
    assert "<Cast>" in page
    assert "<Abs>" not in page
    assert "<IsNull>" not in page


def test_the_recorded_page_is_of_these_queries() -> None:
    page = PAGE.read_text()

    assert [name for name in QUERIES if f"\n## {name}\n" not in page] == []
    assert [name for name in TRIALS if f"\n| `{name}` |" not in page] == []
