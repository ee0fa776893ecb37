"""Settings of windows over one input or two: trigger, evictor, lateness, firing columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from gpu_windows.datastream.steps import ConfigurableStep, R
from gpu_windows.errors import QueryError
from gpu_windows.vocabulary.evictors import Evictor
from gpu_windows.vocabulary.options import Duration, ticks
from gpu_windows.vocabulary.triggers import Trigger
from gpu_windows.vocabulary.windows import WindowAssigner


@dataclass(frozen=True, kw_only=True)
class Windowed(ConfigurableStep[R]):
    """Rows of one input or two in windows. Every method returns a new one."""

    assigner: WindowAssigner
    trigger_: Trigger
    evictor_: Evictor | None = None
    lateness: int = 0
    firing: bool = False
    changes: bool = False

    def trigger(self, trigger: Trigger) -> Self:
        """Say when a window fires; default: at its end (a global window: never).

        Parameters
        ----------
        trigger : Trigger
            Such as ``gw.CountTrigger.of(100)``.

        Examples
        --------
        >>> users = gw.stream(pa.table({"user": ["ann"] * 3})).key_by("user")
        >>> running = users.window(gw.GlobalWindows.create()).trigger(gw.CountTrigger.of(1))
        >>> running.aggregate(n=gw.count())["n"].to_pylist()
        [1, 2, 3]
        """
        if not isinstance(trigger, Trigger):
            rule = "trigger takes a Trigger, such as gw.CountTrigger.of(100)"
            raise QueryError(rule, value=repr(trigger))
        return replace(self, trigger_=trigger)

    def evictor(self, evictor: Evictor) -> Self:
        """Drop rows of a window before or after its function is called.

        Parameters
        ----------
        evictor : Evictor
            Such as ``gw.CountEvictor.of(100)``.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"shop": ["a"] * 3, "amount": [1, 2, 4]})).key_by("shop")
        >>> running = sales.window(gw.GlobalWindows.create()).trigger(gw.CountTrigger.of(1))
        >>> last_two = running.evictor(gw.CountEvictor.of(2))
        >>> last_two.aggregate(total=gw.sum("amount"))["total"].to_pylist()
        [1, 3, 6]
        """
        if not isinstance(evictor, Evictor):
            rule = "evictor takes an Evictor, such as gw.CountEvictor.of(100)"
            raise QueryError(rule, value=repr(evictor))
        return replace(self, evictor_=evictor)

    def with_firing_columns(self, *, changes: bool = False) -> Self:
        """Add the columns ``firing`` and ``timing`` to the results.

        Parameters
        ----------
        changes : bool
            Whether to add ``change``, too: results are then changes of a table that has a row for
            each key and window. ``insert`` adds a row and ``update_after`` replaces it. A session
            that grows or merges after it has fired gets other bounds: before its next result a
            ``delete`` removes each row that it replaces, by keys and bounds alone. A window
            function of yours returns at most one row.

        Notes
        -----
        ``firing`` (BIGINT) counts the firings of a key and window from 0; ``timing`` (STRING) is
        ``early``, ``on_time`` or ``late``.

        Examples
        --------
        >>> import gpu_windows as gw
        >>> import pyarrow as pa
        >>> clicks = gw.stream(pa.table({"user": ["ann", "ann"]})).key_by("user")
        >>> windows = clicks.window(gw.GlobalWindows.create()).trigger(gw.CountTrigger.of(1))
        >>> windows.with_firing_columns().aggregate(n=gw.count())["firing"].to_pylist()
        [0, 1]
        """
        return replace(self, firing=True, changes=self.changes or changes)

    def allowed_lateness(self, lateness: Duration) -> Self:
        """Keep windows for late rows after they fired; each late row fires its window again.

        Parameters
        ----------
        lateness : str or datetime.timedelta
            Of event time, such as ``"1 minute"``.

        Examples
        --------
        The third row is late for the first minute; `trace_firings` runs the rows as a stream:

        >>> sample = pa.table({"user": ["ann"] * 3, "ts": [0, 70_000_000, 5_000_000]})
        >>> timed = gw.stream(sample).event_time(
        ...     "ts", gw.WatermarkStrategy.for_monotonous_timestamps()
        ... )
        >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
        >>> patient = minutes.allowed_lateness("1 minute").with_outputs()
        >>> trace = gw.trace_firings(patient.aggregate(n=gw.count()), sample)
        >>> [(firing.timing, firing.rows) for firing in trace.firings]
        [('on_time', (0,)), ('late', (0, 2)), ('on_time', (1,))]
        """
        return replace(self, lateness=ticks(lateness))
