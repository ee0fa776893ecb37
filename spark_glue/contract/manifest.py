"""The manifest of a query, stored with its state: only the same query may resume from it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa

from gpu_windows.errors import StateCorruptedError, StateMismatchError, StateVersionError
from gpu_windows.planning.added_results import Since, facts_without, find_added, record_added
from gpu_windows.planning.facts import Fact, describe_changes, facts_of
from gpu_windows.planning.input_facts import InputFacts, find_moved_inputs, merge_inputs
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.spark_glue.contract.progress import follows_clock

#: Version of the format and of the meaning of facts. In 1 there were only descriptions; in 2
#: interval joins were windows; in 3 names of partials were numbers.
FORMAT = 5

#: Pairs of strategies; the second can read the state of the first.
_COMPATIBLE = {(Strategy.BUFFER.value, Strategy.COUNTS.value)}


@dataclass(frozen=True)
class Manifest:
    """Facts about a query that must be the same when it is started again, with descriptions.

    Parameters
    ----------
    facts : dict of str to Fact
        See `gpu_windows.planning.facts.facts_of`.
    described : dict of str to str
        For people: name of a part of the query to its description. It is not compared.
    inputs : tuple of InputFacts
        What the query reads, in order. They may change, but for their order.
    begun : mapping of str to Since
        Of each stage, by its name: the results that were added at a later start.
    """

    facts: Mapping[str, Fact]
    described: Mapping[str, str] = field(default_factory=dict, compare=False)
    inputs: tuple[InputFacts, ...] = ()
    begun: Mapping[str, Since] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Manifest:
        """Describe a plan.

        Whether the clock advances a query is a fact: such a query has one more source, and Spark
        refuses to resume with another number of sources.
        """
        facts = facts_of(plan)
        if follows_clock(plan.query):
            facts["acts by the clock"] = True
        described = {
            **plan.query.describe(),
            "strategy": plan.strategy.value,
            "shards": str(plan.query.options.shards),
            "columns": _list_columns(plan.query.schema, plan.input_columns),
            "results": _list_columns(plan.result_schema, plan.result_schema.names),
        }
        return cls(facts, described)

    def with_facts(self, more: Mapping[str, str]) -> Manifest:
        """Return the manifest with more facts, whose values are also their descriptions."""
        return replace(self, facts={**self.facts, **more}, described={**self.described, **more})

    def with_stages(self, earlier: Mapping[str, Manifest]) -> Manifest:
        """Return the manifest of a query with those of its earlier stages, by their names."""
        facts, described = dict(self.facts), dict(self.described)
        for name, each in earlier.items():
            facts |= _in_stage(name, each.facts)
            described |= {f"{name}: {part}": text for part, text in each.described.items()}
        return replace(self, facts=facts, described=described)

    def resume(
        self, other: Manifest, plans: Mapping[str, Plan], begin_empty: Collection[str] = ()
    ) -> Manifest:
        """Return the manifest of a query that resumes from the state of another.

        Inputs may be read from other locations than before.

        Parameters
        ----------
        other : Manifest
        plans : mapping of str to Plan
            Of the stages of this query, by name.
        begin_empty : collection of str
            Results that may begin empty if the other query did not have them.

        Raises
        ------
        StateMismatchError
            With the changes, if the other query is a different one.
        """
        added = {name: find_added(other._results(name), plan) for name, plan in plans.items()}
        allowed = {name: results for name, results in added.items() if {*results} <= {*begin_empty}}
        facts = dict(self.facts)
        for name, results in allowed.items():
            if results:
                facts |= _in_stage(name, facts_without(plans[name], results))
        before, is_compatible = dict(other.facts), _may_change_strategy(other, self)
        if is_compatible:
            before["strategy"] = facts["strategy"]
        changed = list(describe_changes(before, facts))
        if changed:
            refused = [result for name in added.keys() - allowed for result in added[name]]
            raise StateMismatchError(_rule_of_changes(refused), value="; ".join(changed))
        moved = list(find_moved_inputs(other.inputs, self.inputs))
        if moved:
            rule = (
                "a checkpoint has an offset for each input, by its position: inputs stay in the "
                "order in which the query first read them"
            )
            raise StateMismatchError(rule, value="; ".join(moved))
        begun = {
            name: record_added(other.begun.get(name, {}), results) if results else other.begun[name]
            for name, results in allowed.items()
            if results or name in other.begun
        }
        return replace(self, inputs=merge_inputs(other.inputs, self.inputs), begun=begun)

    def _results(self, stage: str) -> Sequence[Sequence[Fact]]:
        """Return names and types of the results of a stage; empty if there is no such stage."""
        found: Sequence[Sequence[Fact]] = self.facts.get(_prefix(stage) + "results", ())
        return found

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `text` returns.

        Raises
        ------
        StateVersionError
            If it has another format.
        StateCorruptedError
            If it is not a manifest.
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
            begun = {
                str(stage): {str(name): int(number) for name, number in since.items()}
                for stage, since in found.get("begun", {}).items()
            }
            return cls(found["facts"], found["described"], inputs, begun)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateCorruptedError(rule, value=text) from error

    @property
    def text(self) -> str:
        """The manifest as JSON."""
        whole = {
            "format": FORMAT,
            "facts": self.facts,
            "described": self.described,
            "inputs": [each.as_json for each in self.inputs],
            "begun": self.begun,
        }
        return json.dumps(whole, sort_keys=True)


def _prefix(stage: str) -> str:
    """Return the prefix of the names of a stage's facts; the last stage has none."""
    return f"{stage}." if stage else ""


def _in_stage(stage: str, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    return {_prefix(stage) + name: fact for name, fact in facts.items()}


def _rule_of_changes(added: Sequence[str]) -> str:
    """Return the error text for a changed query; ``added``: results that are new in it."""
    rule = "a checkpoint belongs to one query: start a changed one on a new checkpoint"
    if not added:
        return rule
    return (
        f"{rule}; where results were only added, they may begin empty: "
        f"write_stream(..., begin_empty={added!r})"
    )


def _may_change_strategy(before: Manifest, after: Manifest) -> bool:
    """Whether the strategy of ``after`` can read the state of that of ``before``."""
    return (before.facts.get("strategy"), after.facts.get("strategy")) in _COMPATIBLE


def _list_columns(schema: pa.Schema, names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"{name} {schema.field(name).type}" for name in names)
