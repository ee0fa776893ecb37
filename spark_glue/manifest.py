"""What a shard's state belongs to: Spark itself accepts another query on old state silently."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from gpu_windows.errors import StateCorruptedError, StateMismatchError, StateVersionError
from gpu_windows.operators.state.store import MANIFEST, Store
from gpu_windows.planning.facts import Fact, changes, facts_of
from gpu_windows.planning.input_facts import InputFacts, find_moved_inputs, merge_inputs
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.spark_glue.texts import (
    add_text,
    files_below,
    files_of,
    literal,
    put_text,
    read_texts,
)
from gpu_windows.spark_glue.times import Times

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Version of the format, and of what the facts mean. 1 were descriptions, without a version; in 2
#: interval joins were windows.
FORMAT = 3

#: Strategies, the latter of which goes on from what the former has stored.
_GOES_ON = {(Strategy.BUFFER.value, Strategy.COUNTS.value)}

#: Where a shard's store keeps it, and a checkpoint.
_WHERE, _FOLDER = (MANIFEST, 0), "gpu_windows"
#: Where a checkpoint keeps what tells its query from others (`gpu_windows.spark_glue.ownership`).
IDENTITY = "gpu_windows_owner"


@dataclass(frozen=True)
class Manifest:
    """What must be the same when a query is started again, and how it is described.

    Parameters
    ----------
    facts : dict of str to Fact
        See `gpu_windows.planning.facts.facts_of`.
    described : dict of str to str
        For people: name of a part of the query to its description. It is not compared.
    inputs : tuple of InputFacts
        What the query reads, in order; a shard's has none. They may change, but for their order.
    edition : int
        How many texts of the query stood in the checkpoint before this one.
    """

    facts: Mapping[str, Fact]
    described: Mapping[str, str] = field(default_factory=dict, compare=False)
    inputs: tuple[InputFacts, ...] = ()
    edition: int = field(default=0, compare=False)

    @classmethod
    def of(cls, plan: Plan, settings: Mapping[str, str] | None = None) -> Manifest:
        """Describe a plan, and the settings of Spark that its state depends on."""
        own = settings or {}
        facts = {**facts_of(plan), "time mode": Times(plan.query).mode, **own}
        shown = {
            **plan.query.describe(),
            "strategy": plan.strategy.value,
            "shards": str(plan.query.options.shards),
            "columns": _listed(plan.query.schema, plan.input_columns),
            "results": _listed(plan.result_schema, plan.result_schema.names),
            **own,
        }
        return cls(facts, shown)

    def told(self, more: Mapping[str, str]) -> Manifest:
        """Return the same with more facts, which are descriptions of themselves."""
        return replace(self, facts={**self.facts, **more}, described={**self.described, **more})

    def check(self, store: Store) -> None:
        """Compare with what the store holds; leave it there if it holds nothing yet.

        It also takes the place of the one of a strategy from which this one goes on: the state is
        moved and saved with it, or neither is. The store knows from then on whether an operator has
        saved there before.

        Raises
        ------
        StateMismatchError
            With what has changed.
        StateVersionError, StateCorruptedError
            If it cannot be read.
        """
        found = store.load(*_WHERE)
        store.is_known = found is not None
        if found is None or self._goes_on_from(self.from_table(found)):
            store.save(*_WHERE, pa.table({"facts": [self.text]}))

    def check_checkpoint(self, session: SparkSession, checkpoint: str) -> None:
        """Compare with what is in a checkpoint's folder; leave it there if there is nothing yet.

        A shard knows only of itself: with another number of shards, new ones would begin with
        nothing while old ones are never asked again. Beside the text of a strategy from which this
        one goes on it leaves its own, as it does where inputs are read from another place than
        before: at no time is there none.

        Raises
        ------
        StateMismatchError
            With what has changed.
        StateVersionError, StateCorruptedError
            If it cannot be read.
        """
        found, folder = self.in_checkpoint(session, checkpoint), f"{checkpoint}/{_FOLDER}"
        if found is None:
            put_text(session, folder, self.text)
            return
        moves, inputs = self._goes_on_from(found), merge_inputs(found.inputs, self.inputs)
        if moves or inputs != found.inputs:
            edition = found.edition + 1
            add_text(session, folder, replace(self, inputs=inputs, edition=edition).text)

    def compare_checkpoint(self, session: SparkSession, checkpoint: str) -> None:
        """Do as `check_checkpoint`, leave nothing, and refuse a folder of somebody else's.

        A query leaves its text before Spark leaves anything: a folder without that text is empty,
        or not a checkpoint of this package.

        Raises
        ------
        StateMismatchError
            Also if the folder holds files, and none of a query of this package.
        """
        found = self.in_checkpoint(session, checkpoint)
        if found is None:
            _check_empty(session, checkpoint)
        else:
            self._goes_on_from(found)

    def check_resumes(self, other: Manifest) -> None:
        """Refuse to go on from what another query has left.

        Raises
        ------
        StateMismatchError
            With what has changed.
        """
        self._goes_on_from(other)

    @staticmethod
    def checkpoint_uri(session: SparkSession, checkpoint: str) -> str:
        """Return a checkpoint, once `check_checkpoint` left its text there, with its scheme."""
        found = files_of(session, f"{literal(checkpoint)}/{_FOLDER}")
        return found[0].rpartition(f"/{_FOLDER}/")[0]

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Read what `check` left in a store."""
        return cls.from_text(table["facts"][0].as_py())

    @classmethod
    def in_checkpoint(cls, session: SparkSession, checkpoint: str) -> Self | None:
        """Read what `check_checkpoint` left in a folder; None if it left nothing.

        Of several texts it is the last edition. A folder without a text is one of a driver that
        died while it wrote it: nothing ran yet.
        """
        texts = sorted(read_texts(session, f"{literal(checkpoint)}/{_FOLDER}"))
        return max(map(cls.from_text, texts), key=attrgetter("edition"), default=None)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `text` returns.

        Raises
        ------
        StateVersionError
            If it is of another format.
        StateCorruptedError
            If it is none.
        """
        rule = "the manifest of a query must be what gpu_windows wrote"
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise StateCorruptedError(rule, value=error) from error
        if not isinstance(found, dict):
            raise StateCorruptedError(rule, value=text)
        if found.get("format") != FORMAT:
            other = f"manifests of format {FORMAT} can be read: another gpu_windows wrote this one"
            raise StateVersionError(other, value=found.get("format", 1))
        if not all(isinstance(found.get(part), dict) for part in ("facts", "described")):
            raise StateCorruptedError(rule, value=text)
        try:
            inputs = tuple(map(InputFacts.from_json, found.get("inputs", ())))
            return cls(found["facts"], found["described"], inputs, int(found.get("edition", 0)))
        except (ValueError, TypeError, KeyError) as error:
            raise StateCorruptedError(rule, value=text) from error

    @property
    def text(self) -> str:
        """The manifest as JSON."""
        whole = {
            "format": FORMAT,
            "facts": self.facts,
            "described": self.described,
            "inputs": [each.as_json for each in self.inputs],
            "edition": self.edition,
        }
        return json.dumps(whole, sort_keys=True)

    def _goes_on_from(self, other: Manifest) -> bool:
        """Refuse another query's; return whether the strategy goes on from another one."""
        before, moves = dict(other.facts), _moves(other, self)
        if moves:
            before["strategy"] = self.facts["strategy"]
        changed = list(changes(before, self.facts))
        if changed:
            rule = "a checkpoint belongs to one query: start a changed one on a new checkpoint"
            raise StateMismatchError(rule, value="; ".join(changed))
        moved = list(find_moved_inputs(other.inputs, self.inputs))
        if moved:
            rule = (
                "a checkpoint has an offset for each input, by its position: inputs stay in the "
                "order in which the query first read them"
            )
            raise StateMismatchError(rule, value="; ".join(moved))
        return moves


def _check_empty(session: SparkSession, checkpoint: str) -> None:
    """Refuse a folder with files that no query of this package has left."""
    whole = checkpoint.rstrip("/") or checkpoint
    files = sorted(files_below(session, literal(whole)))
    others = [file for file in files if file.split("/")[-2] not in (_FOLDER, IDENTITY)]
    if not others:
        return
    is_query = any(file.endswith("/metadata") or "/offsets/" in file for file in others)
    found = "a streaming query that write_stream did not start" if is_query else "other files"
    rule = (
        "a checkpoint must be a new folder, or one that write_stream has begun: choose another "
        f"folder, this one has {found}"
    )
    raise StateMismatchError(rule, value=others[0])


def _moves(before: Manifest, after: Manifest) -> bool:
    """Whether the strategy of one goes on from what the other's has stored."""
    return (before.facts.get("strategy"), after.facts.get("strategy")) in _GOES_ON


def _listed(schema: pa.Schema, names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"{name} {schema.field(name).type}" for name in names)
