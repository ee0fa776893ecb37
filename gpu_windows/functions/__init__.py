"""Functions over the rows of windows, keys and joins.

Public are the classes that your functions, triggers and evictors extend, and descriptors of state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.lazy_names import LazyNames

if TYPE_CHECKING:
    from gpu_windows.aggregates.user import AggregateFunction
    from gpu_windows.functions.broadcast import KeyedBroadcastProcessFunction
    from gpu_windows.functions.co_group import CoGroupFunction, VectorCoGroupFunction
    from gpu_windows.functions.join_function import FlatJoinFunction, ProcessJoinFunction
    from gpu_windows.functions.keyed_process import KeyedCoProcessFunction, KeyedProcessFunction
    from gpu_windows.functions.process import ProcessWindowFunction
    from gpu_windows.functions.state_descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        StateTtlConfig,
        ValueStateDescriptor,
    )
    from gpu_windows.functions.vector_process import VectorProcessFunction
    from gpu_windows.functions.vector_results import VectorResult
    from gpu_windows.functions.vector_window import VectorWindowFunction
    from gpu_windows.vocabulary.evictors import Evictor
    from gpu_windows.vocabulary.triggers import Trigger, TriggerResult
    from gpu_windows.vocabulary.windows import MergingWindowAssigner, WindowAssigner

_NAMES = LazyNames(
    __name__,
    {
        "aggregates.user": "AggregateFunction",
        "functions.broadcast": "KeyedBroadcastProcessFunction",
        "functions.co_group": "CoGroupFunction VectorCoGroupFunction",
        "functions.join_function": "FlatJoinFunction ProcessJoinFunction",
        "functions.keyed_process": "KeyedCoProcessFunction KeyedProcessFunction",
        "functions.process": "ProcessWindowFunction",
        "functions.state_descriptors": (
            "AggregatingStateDescriptor ListStateDescriptor MapStateDescriptor "
            "ReducingStateDescriptor StateTtlConfig ValueStateDescriptor"
        ),
        "functions.vector_process": "VectorProcessFunction",
        "functions.vector_results": "VectorResult",
        "functions.vector_window": "VectorWindowFunction",
        "vocabulary.evictors": "Evictor",
        "vocabulary.triggers": "Trigger TriggerResult",
        "vocabulary.windows": "MergingWindowAssigner WindowAssigner",
    },
)

if not TYPE_CHECKING:  # else no name would be a wrong one
    __getattr__, __dir__ = _NAMES.load, _NAMES.list_names

__all__ = [
    "AggregateFunction", "AggregatingStateDescriptor", "CoGroupFunction", "Evictor",
    "FlatJoinFunction", "KeyedBroadcastProcessFunction", "KeyedCoProcessFunction",
    "KeyedProcessFunction", "ListStateDescriptor", "MapStateDescriptor", "MergingWindowAssigner",
    "ProcessJoinFunction", "ProcessWindowFunction", "ReducingStateDescriptor", "StateTtlConfig",
    "Trigger", "TriggerResult", "ValueStateDescriptor", "VectorCoGroupFunction",
    "VectorProcessFunction", "VectorResult", "VectorWindowFunction", "WindowAssigner",
]  # fmt: skip
