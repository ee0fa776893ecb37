"""What a shard's state belongs to: Spark itself accepts another query on old state silently."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from pyspark.errors import AnalysisException

from gpu_windows.errors import StateMismatchError
from gpu_windows.operators.store import MANIFEST, Store
from gpu_windows.plan import Plan
from gpu_windows.planner import described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Where a shard's store keeps it, and a checkpoint.
_WHERE, _FOLDER = (MANIFEST, 0), "gpu_windows"


@dataclass(frozen=True)
class Manifest:
    """What must be the same when a query is started again.

    Parameters
    ----------
    facts : dict of str to str
        Name of a part of the query to its description.
    """

    facts: dict[str, str]

    @classmethod
    def of(cls, plan: Plan, settings: Mapping[str, str] | None = None) -> Manifest:
        """Describe a plan, and the settings of Spark that its state depends on."""
        return cls(
            {
                **described(plan),
                "strategy": plan.strategy.value,
                "shards": str(plan.query.options.shards),
                "columns": _shown(plan.query.schema, plan.input_columns),
                "results": _shown(plan.result_schema, plan.result_schema.names),
                **(settings or {}),
            }
        )

    def check(self, store: Store) -> None:
        """Compare with what the store holds; leave it there if it holds nothing yet.

        The store knows from then on whether an operator has saved there before.

        Raises
        ------
        StateMismatchError
            With what has changed.
        """
        found = store.load(*_WHERE)
        store.is_known = found is not None
        if found is None:
            store.save(*_WHERE, pa.table({"facts": [self._text]}))
        else:
            self._compare(self.from_table(found))

    def check_checkpoint(self, session: SparkSession, checkpoint: str) -> None:
        """Compare with what is in a checkpoint's folder; leave it there if there is nothing yet.

        A shard knows only of itself: with another number of shards, new ones would begin with
        nothing while old ones are never asked again.

        Raises
        ------
        StateMismatchError
            With what has changed.
        """
        found = self.in_checkpoint(session, checkpoint)
        if found is None:
            facts = session.createDataFrame([(self._text,)], "facts string")
            facts.coalesce(1).write.mode("overwrite").text(f"{checkpoint}/{_FOLDER}")
        else:
            self._compare(found)

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Read what `check` left in a store."""
        return cls(json.loads(table["facts"][0].as_py()))

    @classmethod
    def in_checkpoint(cls, session: SparkSession, checkpoint: str) -> Self | None:
        """Read what `check_checkpoint` left in a folder; None if it left nothing.

        A folder without a text is one of a driver that died while it wrote it: nothing ran yet.
        """
        try:
            found = session.read.text(f"{checkpoint}/{_FOLDER}", wholetext=True).first()
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return None
        return cls(json.loads(found[0])) if found is not None and found[0] else None

    @property
    def _text(self) -> str:
        return json.dumps(self.facts, sort_keys=True)

    def _compare(self, other: Manifest) -> None:
        before = other.facts
        changed = [
            f"{name} was {before.get(name)}, is {self.facts.get(name)}"
            for name in sorted(before.keys() | self.facts.keys())
            if before.get(name) != self.facts.get(name)
        ]
        if changed:
            rule = "a checkpoint belongs to one query: start a changed one on a new checkpoint"
            raise StateMismatchError(rule, value="; ".join(changed))


def _shown(schema: pa.Schema, names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"{name} {schema.field(name).type}" for name in names)
