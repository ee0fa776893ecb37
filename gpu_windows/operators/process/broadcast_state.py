"""Broadcast state: maps of a shard, shared by all of its keys.

In a log they are a table of their own. A call reads it when its function accesses a map, and writes
it if a map has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.state_descriptors import MapStateDescriptor
from gpu_windows.operators.keyed.state import declaration_error
from gpu_windows.operators.process.state_cells import MapCell, Now
from gpu_windows.operators.process.states import Mapped
from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.whole_table import WholeTable

#: Name of the table in a log.
BROADCAST = "broadcast state"
#: Column with the number of the map of an entry.
_STATE = "state"


class BroadcastHandles:
    """Handles of broadcast state, which a function may store.

    The operator that calls the function binds them to the maps of its shard.

    Parameters
    ----------
    descriptors : mapping of str to MapStateDescriptor
    owner : str
        Name of the function in errors.
    """

    def __init__(self, descriptors: Mapping[str, MapStateDescriptor], owner: str) -> None:
        self._owner, self._descriptors = owner, descriptors
        self._cells = {name: MapCell(each) for name, each in descriptors.items()}
        self.unbind()
        now = Now()  # all maps have one key, the empty one
        self._writable: dict[str, _NotifyingMap] = {}
        for name, cell in self._cells.items():
            what = f"the broadcast state {name!r} of {owner}"
            self._writable[name] = _NotifyingMap(
                cell, now, descriptors[name].dtypes, what, self._note_change
            )
        self._read_only = {name: ReadOnlyMap(each, owner) for name, each in self._writable.items()}

    def bind(self, state: BroadcastState) -> None:
        """Bind the handles to the maps of a shard."""
        self._bound = state
        for name, cell in self._cells.items():
            cell.by_key = state.maps[name]

    def unbind(self) -> None:
        """Bind the handles to empty maps."""
        self.bind(BroadcastState(self._descriptors))

    def writable(self, name: str) -> Mapped:
        """Return a map for the broadcast side.

        Raises
        ------
        InvalidFunctionError
            If it was not declared.
        """
        return self._find_handle(self._writable, name)  # type: ignore[no-any-return]

    def read_only(self, name: str) -> ReadOnlyMap:
        """Return a map for the keyed side.

        Raises
        ------
        InvalidFunctionError
            If it was not declared.
        """
        return self._find_handle(self._read_only, name)  # type: ignore[no-any-return]

    def _find_handle(self, handles: Mapping[str, Any], name: str) -> Any:
        found = handles.get(name)
        if found is None:
            raise declaration_error(self._owner, name, sorted(handles), "broadcast state")
        return found

    def _note_change(self) -> None:
        self._bound.is_changed = True


class BroadcastState:
    """The maps of a shard.

    Parameters
    ----------
    descriptors : mapping of str to MapStateDescriptor

    Attributes
    ----------
    maps : dict
        The contents of each map, by name.
    is_changed : bool
        Whether it must be written.
    """

    def __init__(self, descriptors: Mapping[str, MapStateDescriptor]) -> None:
        self._cells = {name: MapCell(each) for name, each in sorted(descriptors.items())}
        for cell in self._cells.values():
            cell.by_key = _LazyDict(self._load)
        self.maps = {name: cell.by_key for name, cell in self._cells.items()}
        self.is_changed = False
        self._table: WholeTable | None = None
        self._is_loaded = True

    # ---- in a log

    def restore(self, log: StateLog) -> None:
        """Resume from a log, which is read on first access."""
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
        return sum(len(cell.get(())) for cell in self._cells.values())

    def _load(self) -> None:
        """Load the entries from the log, once."""
        if self._is_loaded:
            return
        self._is_loaded = True
        table = None if self._table is None else self._table.load()
        if table is None:
            return
        for number, (name, cell) in enumerate(self._cells.items()):
            some = table.filter(pc.equal(table.column(_STATE), number))
            columns = (some.column(column).to_pylist() for column, _ in _columns(name, cell))
            if len(some):
                cell.load((), ([*zip(*columns, strict=True)],))

    def _entries(self) -> pa.Table:
        """Return all entries: the number of their map, and the columns of each map."""
        fields = [pa.field(_STATE, pa.int8())]
        tables = []
        for number, (name, cell) in enumerate(self._cells.items()):
            entries = cell.get(())
            of_key, of_value = (pa.field(*column) for column in _columns(name, cell))
            columns = {
                _STATE: pa.repeat(pa.scalar(number, pa.int8()), len(entries)),
                of_key.name: pa.array([*entries], of_key.type),
                of_value.name: pa.array([*entries.values()], of_value.type),
            }
            tables.append(pa.table(columns))
            fields += [of_key, of_value]
        whole = pa.schema(fields)
        return pa.concat_tables([whole.empty_table(), *tables], promote_options="default")


def _columns(name: str, cell: MapCell) -> list[tuple[str, pa.DataType]]:
    """Return the columns of the keys and the values of a map, and their types."""
    of_key, of_value = cell.dtypes
    return [(f"{name} key", of_key), (f"{name} value", of_value)]


class _LazyDict(dict[Any, Any]):
    """Contents of a map, which are read from the store on first access.

    It overrides the methods that `MapCell` and `Mapped` call first.
    """

    def __init__(self, load: Callable[[], None]) -> None:
        super().__init__()
        self._load = load

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the contents."""
        self._load()
        return super().get(key, default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the contents; set them to ``default`` if there are none."""
        self._load()
        return super().setdefault(key, default)

    def pop(self, key: Any, default: Any = None) -> Any:
        """Remove the contents."""
        self._load()
        return super().pop(key, default)


class _NotifyingMap(Mapped):
    """A map that calls a function when it changes."""

    def __init__(
        self,
        cell: MapCell,
        now: Now,
        dtypes: tuple[pa.DataType, ...],
        what: str,
        changed: Callable[[], None],
    ) -> None:
        super().__init__(cell, now, dtypes, what)
        self._changed = changed

    def put(self, key: Any, value: Any) -> None:
        """Set an entry."""
        super().put(key, value)
        self._changed()

    def remove(self, key: Any) -> None:
        """Remove an entry."""
        super().remove(key)
        self._changed()

    def clear(self) -> None:
        """Remove all entries."""
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
