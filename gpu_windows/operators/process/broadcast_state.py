"""Broadcast state: maps that a shard keeps for all of its keys.

In a log they are a table of their own. A call reads it if its function asks for a map, and writes
it if one has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.keyed_state import MapStateDescriptor
from gpu_windows.operators.process.kept import Entries, Now
from gpu_windows.operators.process.states import Mapped
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_kind import KeyColumns
from gpu_windows.operators.state.whole_table import WholeTable

#: What a log calls the table.
BROADCAST = "broadcast state"
#: The column that says of which map an entry is, by number.
_STATE = "state"


class BroadcastHandles:
    """What a function sees of broadcast state; it may keep it, as it may keyed state.

    It shows the maps of the shard at hand: the operator that calls the function sets it.

    Parameters
    ----------
    declared : mapping of str to MapStateDescriptor
    owner : str
        What errors call the function.
    """

    def __init__(self, declared: Mapping[str, MapStateDescriptor], owner: str) -> None:
        self._owner, self._declared = owner, declared
        self._kept = {name: Entries(each) for name, each in declared.items()}
        self.hide()
        now = Now()  # one key for all
        self._writable: dict[str, _Written] = {}
        for name, kept in self._kept.items():
            what = f"the broadcast state {name!r} of {owner}"
            self._writable[name] = _Written(
                kept, now, declared[name].dtypes, what, self._note_change
            )
        self._read_only = {name: ReadOnlyMap(each, owner) for name, each in self._writable.items()}

    def show(self, state: BroadcastState) -> None:
        """Have the function see the maps of a shard."""
        self._at_hand = state
        for name, kept in self._kept.items():
            kept.held = state.held[name]

    def hide(self) -> None:
        """Have it see empty maps of no shard."""
        self.show(BroadcastState(self._declared))

    def writable(self, name: str) -> Mapped:
        """Return a map for the broadcast side.

        Raises
        ------
        InvalidFunctionError
            If it was not declared.
        """
        return self._asked(self._writable, name)  # type: ignore[no-any-return]

    def read_only(self, name: str) -> ReadOnlyMap:
        """Return a map for the keyed side.

        Raises
        ------
        InvalidFunctionError
            If it was not declared.
        """
        return self._asked(self._read_only, name)  # type: ignore[no-any-return]

    def _asked(self, handles: Mapping[str, Any], name: str) -> Any:
        found = handles.get(name)
        if found is None:
            names = ", ".join(sorted(handles)) or "none"
            rule = f"{self._owner} must declare its broadcast state; it declared {names}"
            raise InvalidFunctionError(rule, value=repr(name))
        return found

    def _note_change(self) -> None:
        self._at_hand.is_changed = True


class BroadcastState:
    """The maps of a shard.

    Parameters
    ----------
    declared : mapping of str to MapStateDescriptor

    Attributes
    ----------
    held : dict
        What is held of each map, by name.
    is_changed : bool
        Whether it is to be written.
    """

    def __init__(self, declared: Mapping[str, MapStateDescriptor]) -> None:
        self._kept = {name: Entries(each) for name, each in sorted(declared.items())}
        for kept in self._kept.values():
            kept.held = _ReadWhenAsked(self._load)
        self.held = {name: kept.held for name, kept in self._kept.items()}
        self.is_changed = False
        self._table: WholeTable | None = None
        self._is_loaded = True

    # ---- in a log

    def restore(self, log: StateLog) -> None:
        """Resume from what a log has; it is read when an entry is asked for."""
        self._table, self._is_loaded = WholeTable(log, BROADCAST, KeyColumns.NONE), False

    def save(self) -> None:
        """Write the maps if one has changed."""
        if self.is_changed:
            assert self._table is not None, "restore comes first"
            self._table.save(self._entries())
            self.is_changed = False

    def __len__(self) -> int:
        if self._table is not None and not self._is_loaded:
            return len(self._table)
        return sum(len(kept.get(())) for kept in self._kept.values())

    def _load(self) -> None:
        """Load the entries from the log, once."""
        if self._is_loaded:
            return
        self._is_loaded = True
        table = None if self._table is None else self._table.load()
        if table is None:
            return
        for number, (name, kept) in enumerate(self._kept.items()):
            some = table.filter(pc.equal(table.column(_STATE), number))
            columns = (some.column(column).to_pylist() for column, _ in _columns(name, kept))
            if len(some):
                kept.load((), ([*zip(*columns, strict=True)],))

    def _entries(self) -> pa.Table:
        """Return all entries: of which map each is, and the columns of each map."""
        fields = [pa.field(_STATE, pa.int8())]
        tables = []
        for number, (name, kept) in enumerate(self._kept.items()):
            held = kept.get(())
            of_key, of_value = (pa.field(*column) for column in _columns(name, kept))
            columns = {
                _STATE: pa.repeat(pa.scalar(number, pa.int8()), len(held)),
                of_key.name: pa.array([*held], of_key.type),
                of_value.name: pa.array([*held.values()], of_value.type),
            }
            tables.append(pa.table(columns))
            fields += [of_key, of_value]
        whole = pa.schema(fields)
        return pa.concat_tables([whole.empty_table(), *tables], promote_options="default")


def _columns(name: str, kept: Entries) -> list[tuple[str, pa.DataType]]:
    """Return the columns of the keys and the values of a map, and their types."""
    of_key, of_value = kept.dtypes
    return [(f"{name} key", of_key), (f"{name} value", of_value)]


class _ReadWhenAsked(dict[Any, Any]):
    """What is held of a map, which is read from the store when it is asked for.

    It has what `Entries` and `Mapped` ask first.
    """

    def __init__(self, load: Callable[[], None]) -> None:
        super().__init__()
        self._load = load

    def get(self, key: Any, default: Any = None) -> Any:
        """Return what is held."""
        self._load()
        return super().get(key, default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return what is held, that is ``default`` if nothing was."""
        self._load()
        return super().setdefault(key, default)

    def pop(self, key: Any, default: Any = None) -> Any:
        """Let go of what is held."""
        self._load()
        return super().pop(key, default)


class _Written(Mapped):
    """A map that tells when it changes."""

    def __init__(
        self,
        kept: Entries,
        now: Now,
        dtypes: tuple[pa.DataType, ...],
        what: str,
        changed: Callable[[], None],
    ) -> None:
        super().__init__(kept, now, dtypes, what)
        self._changed = changed

    def put(self, key: Any, value: Any) -> None:
        """Set an entry."""
        super().put(key, value)
        self._changed()

    def remove(self, key: Any) -> None:
        """Forget an entry."""
        super().remove(key)
        self._changed()

    def clear(self) -> None:
        """Forget all."""
        super().clear()
        self._changed()


class ReadOnlyMap:
    """A `gpu_windows.functions.broadcast.ReadOnlyBroadcastState`."""

    def __init__(self, whole: Mapped, owner: str) -> None:
        self._owner = owner
        self.get, self.contains, self.is_empty = whole.get, whole.contains, whole.is_empty
        self.keys, self.values, self.items = whole.keys, whole.values, whole.items

    def _refuse(self, *_: object) -> NoReturn:
        rule = (
            f"{self._owner} writes broadcast state in process_broadcast_element alone: elsewhere "
            "shards would differ"
        )
        raise InvalidFunctionError(rule)

    put = put_all = remove = clear = _refuse
