"""The named process functions of scenarios with a broadcast side, as functions of ours.

See `tests.conformance.process_base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa

from gpu_windows.functions.broadcast import (
    BroadcastContext,
    KeyedBroadcastProcessFunction,
    ReadOnlyContext,
)
from gpu_windows.functions.keyed_state import MapState, ReadOnlyBroadcastState
from gpu_windows.functions.state_descriptors import MapStateDescriptor, ValueStateDescriptor
from gpu_windows.vocabulary.triggers import Row
from tests.conformance.process_base import DOUBLE, LONG, TEXT, Found, OfScenario

#: All rules, in order of their names.
_RULES = pa.list_(pa.struct({"name": TEXT, "threshold": DOUBLE}))


class Rules(OfScenario, KeyedBroadcastProcessFunction):
    """Left: rows. Right: thresholds by name, which all rows meet."""

    output: ClassVar = {
        "how": TEXT, "value": DOUBLE, "seq": LONG, "rule": TEXT, "threshold": DOUBLE,
        "rules": _RULES, "timer": LONG, "count": LONG, "now": LONG, "timestamp": LONG,
    }  # fmt: skip
    _changed: ClassVar = ("rule", "threshold", "rules", "now")
    shapes: ClassVar = {
        "set": _changed,
        "removed": _changed,
        "match": ("value", "seq", "rule", "threshold"),
        "none": ("value", "seq"),
        "timer": ("timer", "count", "rules", "now"),
    }
    state: ClassVar = {"count": ValueStateDescriptor(LONG)}
    broadcast_state: ClassVar = {"rules": MapStateDescriptor(TEXT, DOUBLE)}

    def told(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of a row, rules as pairs."""
        told = super().told(row)
        if "rules" in told:
            told["rules"] = [[rule["name"], rule["threshold"]] for rule in told["rules"]]
        return told

    def process_broadcast_element(self, row: Row, context: BroadcastContext) -> Found:
        """Set a rule, or remove it, and tell all."""
        rules, name = context.broadcast_state("rules"), row["key"]
        value: Any = row["value"]
        if value >= 0:
            how, threshold = "set", value
            rules.put(name, value)
        else:
            how, threshold = "removed", rules.get(name)
            rules.remove(name)
        yield self.row(
            how=how,
            rule=name,
            threshold=threshold,
            rules=_sorted(rules),
            now=self.ms(self.now(context)),
            timestamp=self.stamp(context),
        )

    def process_element(self, row: Row, context: ReadOnlyContext) -> Found:
        """Count a row, and tell the rules that it meets."""
        count = context.state("count")
        count.update(count.value(0) + 1)
        seen = {"value": row["value"], "seq": row["seq"], "timestamp": self.stamp(context)}
        met = [
            self.row(how="match", rule=rule["name"], threshold=rule["threshold"], **seen)
            for rule in _sorted(context.broadcast_state("rules"))
            if rule["threshold"] <= row["value"]
        ]
        yield from met or [self.row(how="none", **seen)]
        self.set_timer(context, self.at(context) + self.param)

    def on_timer(self, time: int, context: Any) -> Found:
        """Tell the count and the rules of the moment, and forget the count."""
        yield self.row(
            how="timer",
            timer=self.ms(time),
            count=context.state("count").value(),
            rules=_sorted(context.broadcast_state("rules")),
            now=self.ms(self.now(context)),
            timestamp=self.timer_stamp(context),
        )
        context.state("count").clear()


class RulesSideOutputs(Rules):
    """The same; negative rows and rules that were replaced go aside."""

    side_outputs: ClassVar = {
        "rejected": pa.schema({"value": DOUBLE, "seq": LONG, "timestamp": LONG}.items()),
        "replaced": pa.schema(
            {"rule": TEXT, "threshold": DOUBLE, "seq": LONG, "timestamp": LONG}.items()
        ),
    }

    def told(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of a row; what goes aside has no ``how``."""
        if "how" in row:
            return super().told(row)
        aside = self.side_outputs["replaced" if "rule" in row else "rejected"]
        return {name: row[name] for name in aside.names if name != "timestamp"}

    def process_broadcast_element(self, row: Row, context: BroadcastContext) -> Found:
        """Put the rule aside that is there, then set or remove it."""
        name = row["key"]
        known = context.broadcast_state("rules").get(name)
        if known is not None:
            replaced = {"rule": name, "threshold": known, "seq": row["seq"]}
            context.output("replaced", {**replaced, "timestamp": self.stamp(context)})
        yield from super().process_broadcast_element(row, context)

    def process_element(self, row: Row, context: ReadOnlyContext) -> Found:
        """Put a negative row aside, or count it."""
        value: Any = row["value"]
        if value >= 0:
            yield from super().process_element(row, context)
            return
        rejected = {"value": value, "seq": row["seq"], "timestamp": self.stamp(context)}
        context.output("rejected", rejected)


class BroadcastProbe(OfScenario, KeyedBroadcastProcessFunction):
    """Tells the time at each row of both sides, and sets timers by it."""

    output: ClassVar = {
        "how": TEXT, "value": DOUBLE, "now": LONG, "timer": LONG, "timestamp": LONG,
    }  # fmt: skip
    shapes: ClassVar = {
        "broadcast": ("value", "now"),
        "row": ("value", "now"),
        "timer": ("timer", "now"),
    }

    def process_broadcast_element(self, row: Row, context: BroadcastContext) -> Found:
        """Tell the time."""
        yield self._told("broadcast", row, context)

    def process_element(self, row: Row, context: ReadOnlyContext) -> Found:
        """Tell the time, and set a timer after it."""
        yield self._told("row", row, context)
        self.set_timer(context, self.now(context) + self.param)

    def on_timer(self, time: int, context: Any) -> Found:
        """Tell both times."""
        named = {"timer": self.ms(time), "now": self.ms(self.now(context))}
        yield self.row(how="timer", **named, timestamp=self.timer_stamp(context))

    def _told(
        self, how: str, row: Row, context: ReadOnlyContext | BroadcastContext
    ) -> dict[str, Any]:
        now = self.ms(self.now(context))
        return self.row(how=how, value=row["value"], now=now, timestamp=self.stamp(context))


def _sorted(rules: ReadOnlyBroadcastState | MapState) -> list[dict[str, Any]]:
    """Return the rules in Java's order of their names: by UTF-16 code units."""
    found = sorted(rules.items(), key=lambda rule: str(rule[0]).encode("utf-16-be"))
    return [{"name": name, "threshold": threshold} for name, threshold in found]
