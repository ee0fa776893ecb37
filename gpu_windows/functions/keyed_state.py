"""State as process functions are given it: always that of the current key."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, KeysView, Mapping, ValuesView
from typing import Any, Protocol


class ValueState(Protocol):
    """One value of the current key (Flink: ValueState).

    Examples
    --------
    >>> class Numbered(gw.functions.KeyedProcessFunction):
    ...     state = {"rows": gw.functions.ValueStateDescriptor(pa.int64())}
    ...
    ...     def process_element(self, row, context):
    ...         rows: gw.typing.ValueState = context.state("rows")
    ...         rows.update(rows.value(0) + 1)
    ...         return [{"number": rows.value()}]
    >>> users = gw.stream(pa.table({"user": ["ann", "bob", "ann"]})).key_by("user")
    >>> users.process(Numbered(), output="number BIGINT").to_pylist()
    [{'user': 'ann', 'number': 1}, {'user': 'bob', 'number': 1}, {'user': 'ann', 'number': 2}]
    """

    def value(self, default: Any = None) -> Any:
        """Return the value, or ``default`` without one."""

    def update(self, value: Any) -> None:
        """Set the value; None clears it."""

    def clear(self) -> None:
        """Remove the value."""


class ListState(Protocol):
    """A list of the current key (Flink: ListState).

    Examples
    --------
    >>> class Trail(gw.functions.KeyedProcessFunction):
    ...     state = {"pages": gw.functions.ListStateDescriptor(pa.string())}
    ...
    ...     def process_element(self, row, context):
    ...         pages: gw.typing.ListState = context.state("pages")
    ...         pages.add(row["page"])
    ...         return [{"trail": " > ".join(pages.get())}]
    >>> clicks = gw.stream(pa.table({"user": ["ann", "ann"], "page": ["home", "cart"]}))
    >>> clicks.key_by("user").process(Trail(), ["page"], output="trail STRING")["trail"].to_pylist()
    ['home', 'home > cart']
    """

    def get(self) -> list[Any]:
        """Return the elements, in the order in which they were added, as a new list."""

    def add(self, value: Any) -> None:
        """Append an element; None is ignored."""

    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements."""

    def update(self, values: Iterable[Any]) -> None:
        """Replace the elements."""

    def clear(self) -> None:
        """Remove all elements."""


class ReadOnlyBroadcastState(Protocol):
    """A map that rows of the broadcast stream fill (Flink: ReadOnlyBroadcastState).

    Examples
    --------
    >>> class Sizes(gw.functions.KeyedBroadcastProcessFunction):
    ...     broadcast_state = {"rules": gw.functions.MapStateDescriptor(pa.string(), pa.int64())}
    ...
    ...     def process_broadcast_element(self, row, context):
    ...         context.broadcast_state("rules").put(row["rule"], row["limit"])
    ...
    ...     def process_element(self, row, context):
    ...         rules = context.broadcast_state("rules")
    ...         return [{"rules": ", ".join(rules.keys()), "limits": sum(rules.values())}]
    >>> users = gw.stream(pa.table({"user": ["ann"]})).key_by("user")
    >>> rules = gw.stream(pa.table({"rule": ["clicks", "logins"], "limit": [100, 5]}))
    >>> both = users.connect(rules.broadcast())
    >>> both.process(
    ...     Sizes(), broadcast=["rule", "limit"], output="rules STRING, limits BIGINT"
    ... ).to_pylist()
    [{'user': 'ann', 'rules': 'clicks, logins', 'limits': 105}]
    """

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of an entry, or ``default`` without one."""

    def contains(self, key: Any) -> bool:
        """Return whether there is an entry."""

    def keys(self) -> KeysView[Any]:
        """Return the keys, in the order in which they were first put."""

    def values(self) -> ValuesView[Any]:
        """Return the values."""

    def items(self) -> ItemsView[Any, Any]:
        """Return keys and values."""

    def is_empty(self) -> bool:
        """Return whether there is no entry."""


class MapState(ReadOnlyBroadcastState, Protocol):
    """A map of the current key (Flink: MapState). All NaN are one key, and -0.0 is 0.0.

    Examples
    --------
    >>> class Visits(gw.functions.KeyedProcessFunction):
    ...     state = {"counts": gw.functions.MapStateDescriptor(pa.string(), pa.int64())}
    ...
    ...     def process_element(self, row, context):
    ...         counts: gw.typing.MapState = context.state("counts")
    ...         counts.put(row["page"], counts.get(row["page"], 0) + 1)
    ...         return [{"visits": counts.get(row["page"])}]
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "page": ["home", "cart", "home"]}))
    >>> clicks.key_by("user").process(Visits(), ["page"], output="visits BIGINT")[
    ...     "visits"
    ... ].to_pylist()
    [1, 1, 2]
    """

    def put(self, key: Any, value: Any) -> None:
        """Set an entry; its value may be None, its key may not."""

    def put_all(self, entries: Mapping[Any, Any]) -> None:
        """Set entries."""

    def remove(self, key: Any) -> None:
        """Remove an entry."""

    def clear(self) -> None:
        """Remove all entries."""


class AppendingState(Protocol):
    """The aggregate of all values added for the current key.

    Flink: ReducingState, AggregatingState.

    Examples
    --------
    >>> class Highest(gw.functions.KeyedProcessFunction):
    ...     state = {"price": gw.functions.ReducingStateDescriptor(max, pa.float64())}
    ...
    ...     def process_element(self, row, context):
    ...         price: gw.typing.AppendingState = context.state("price")
    ...         price.add(row["price"])
    ...         return [{"highest": price.get()}]
    >>> prices = gw.stream(pa.table({"item": ["tea"] * 3, "price": [3.0, 4.5, 4.0]})).key_by("item")
    >>> prices.process(Highest(), ["price"], output="highest DOUBLE")["highest"].to_pylist()
    [3.0, 4.5, 4.5]
    """

    def get(self) -> Any:
        """Return the aggregate; None if no value was added."""

    def add(self, value: Any) -> None:
        """Add a value of a `ReducingStateDescriptor`, or a row of an aggregate."""

    def clear(self) -> None:
        """Remove the value."""
