"""What a shard's state belongs to: Spark itself accepts another query on old state silently."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.errors import StateMismatchError
from gpu_windows.operators.store import Store
from gpu_windows.plan import Plan
from gpu_windows.planner import described

_WHERE = ("manifest", 0)


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
    def of(cls, plan: Plan) -> Manifest:
        """Describe a plan."""
        return cls(
            {
                **described(plan),
                "strategy": plan.strategy.value,
                "shards": str(plan.query.options.shards),
                "columns": str(_shown(plan.query.schema, plan.input_columns)),
                "results": str(_shown(plan.result_schema, plan.result_schema.names)),
            }
        )

    def check(self, store: Store) -> None:
        """Compare with what the store holds; leave it there if it holds nothing yet.

        Raises
        ------
        StateMismatchError
            With what has changed.
        """
        found = store.load(*_WHERE)
        if found is None:
            store.save(*_WHERE, pa.table({"facts": [json.dumps(self.facts)]}))
            return
        before = json.loads(found["facts"][0].as_py())
        changed = [
            f"{name} was {before.get(name)}, is {self.facts.get(name)}"
            for name in sorted(before.keys() | self.facts.keys())
            if before.get(name) != self.facts.get(name)
        ]
        if changed:
            rule = "a checkpoint belongs to one query: start a changed one on a new checkpoint"
            raise StateMismatchError(rule, value="; ".join(changed))


def _shown(schema: pa.Schema, names: tuple[str, ...] | list[str]) -> dict[str, str]:
    return {name: str(schema.field(name).type) for name in names}
