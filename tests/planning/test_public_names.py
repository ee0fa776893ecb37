"""Functions see expressions by the names that users gave them, not by those inside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.planning.planner import plan
from gpu_windows.runners.arrow_source import ArrowOutputs
from tests.operators.joins.rows import ENGINES, TUMBLING, keyed, table

SEEN = pa.schema([("seen", pa.string())])
#: As Spark has the columns of expressions.
PUBLIC = {"k": "upper", "v": "twice"}


def shown(outputs: Any) -> Any:
    """Return the outputs of a query that calls its columns by other names than the user."""
    query = replace(outputs.plan.query, display_names=PUBLIC)
    return ArrowOutputs(plan(query, bounded=True), outputs.data)


class Told:
    """Says what it sees."""

    keys: tuple[str, ...] = ()
    fails = False

    def open(self, context: Any) -> None:
        self.keys = context.keys

    def seen(self, *seen: Any) -> list[dict[str, str]]:
        if self.fails:
            raise ValueError("no")
        return [{"seen": str((self.keys, *seen))}]


class Keyed(Told, gw.functions.KeyedProcessFunction):
    def process_element(self, row: Any, context: Any) -> Any:
        return self.seen(context.key, row)


class Windowed(Told, gw.functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, rows: Any) -> Any:
        return self.seen(key, rows.to_pylist()[0])


class Many(Told, gw.functions.VectorWindowFunction):
    def process(self, batch: gw.typing.WindowBatch) -> pa.Table:
        (key,) = batch.windows.drop_columns(["window_start", "window_end"]).to_pylist()
        return pa.Table.from_pylist(self.seen(key, batch.rows.to_pylist()[0]), SEEN)


class ManyKeys(Told, gw.functions.VectorProcessFunction):
    state: ClassVar = {"n": pa.int64()}
    keys = ("upper",)

    def open(self, *_: Any) -> None:
        """Do nothing: it may be told nothing."""

    def process_batch(self, batch: gw.typing.RowsBatch) -> gw.functions.VectorResult:
        seen = self.seen(batch.keys.to_pylist()[0], batch.rows.to_pylist()[0])
        return gw.functions.VectorResult(rows=pa.Table.from_pylist(seen, SEEN))


#: Functions of keys are told themselves what they call their columns.
KINDS = ((Keyed, "v"), (ManyKeys, "v"), (Windowed, "twice"), (Many, "twice"))


def made(function: Any, engine: Any) -> Any:
    rows = keyed(table([("a", 1, 2)]))
    if isinstance(function, Keyed | ManyKeys):
        return shown(rows.with_outputs().process(function, ["v"], output=SEEN))
    windowed = rows.window(TUMBLING).options(engine=engine, device="cpu")
    return shown(windowed.with_outputs().process(function, ["v"], output=SEEN))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("kind", "column"), KINDS)
def test_keys_and_columns(kind: Any, column: str, engine: Any) -> None:
    wanted = str((("upper",), {"upper": "a"}, {column: 2}))
    assert made(kind(), engine).result()["seen"].to_pylist() == [wanted]


@pytest.mark.parametrize("kind", [Keyed, Windowed])
def test_errors(kind: Any) -> None:
    function = kind()
    function.fails = True
    with pytest.raises(errors.FunctionFailedError, match="key upper='a'"):
        made(function, "auto").result()
