"""Several queries as one: they are stages of it, and share streams, micro-batches and commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from itertools import chain

from gpu_windows.errors import QueryError
from gpu_windows.runners.sink import Sink, SinkQuery, Target, TargetsSink
from gpu_windows.runners.stages import Stage, check_distinct_stages, stage_output
from gpu_windows.spark_glue.contract.output_kinds import kinds_of
from gpu_windows.spark_glue.streams.outputs import StreamOutputs
from gpu_windows.spark_glue.streams.sink_query import facts_for_sinks
from gpu_windows.spark_glue.streams.stages import check_has_no_clock


def combine_targets(targets: Mapping[str, StreamOutputs]) -> StreamOutputs:
    """Return outputs of one query that computes those of several.

    All but the last are its earlier stages, by their names here.

    Parameters
    ----------
    targets : mapping of str to StreamOutputs
        By names that folders can have. Names of the stages before each of them differ, too.

    Raises
    ------
    QueryError
        If there are none, or names are not distinct or no names of folders.
    UnsupportedQueryError
        If one of several depends on processing time.
    """
    if not targets:
        raise QueryError("write_stream takes at least one query", value=str(targets))
    *others, last = targets
    if others:
        for outputs in targets.values():
            check_has_no_clock(outputs.plan.query)
    stages = ((*targets[name].earlier, targets[name].as_stage(name)) for name in others)
    combined = copy(targets[last])
    combined.earlier = (*chain.from_iterable(stages), *combined.earlier)
    for each in combined.earlier:
        Stage(each.name)  # checks it
    check_distinct_stages(each.name for each in combined.earlier)
    return combined


def combine_sinks(
    targets: Mapping[str, StreamOutputs], sinks: Mapping[str, Sink], of_paths: Collection[str]
) -> Sink:
    """Return a sink that gives each query of `combine_targets` to its own.

    ``of_paths``: names of those that write to a path of their own. They have the identity of the
    whole, by which a rollback finds them; others may write to one table or topic.

    Raises
    ------
    QueryError
        If queries and sinks have different names.
    """
    if [*targets] != [*sinks] and set(targets) != set(sinks):
        odd = sorted({*targets} ^ {*sinks})
        rule = "each query has a sink, by the same name"
        raise QueryError(rule, value=", ".join(map(str, odd)))
    last = [*targets][-1]
    return TargetsSink(
        {
            name: Target(
                sinks[name],
                outputs.plan,
                dict(_output_names("" if name == last else name, outputs)),
                partial(_as_target, outputs, "" if name in (last, *of_paths) else name),
            )
            for name, outputs in targets.items()
        }
    )


def _as_target(outputs: StreamOutputs, name: str, query: SinkQuery) -> SinkQuery:
    """Return the query of a target of the whole query.

    ``name``: of its stage; empty: its identity is that of the whole.
    """
    identity = identity_of(query.identity, name) if name else query.identity
    return replace(query, identity=identity, **facts_for_sinks(outputs))


def identity_of(whole: str, name: str) -> str:
    """Return the identity of one of several queries: 32 hex digits, the same at every start."""
    return blake2b(f"{whole}/{name}".encode(), digest_size=16).hexdigest()


def _output_names(name: str, outputs: StreamOutputs) -> Iterable[tuple[str, str]]:
    """Yield the names of a query's outputs in the whole, and its own."""
    for own in kinds_of(outputs.plan):
        yield (stage_output(name, own) if name else own), own
    for each in outputs.reader.earlier:
        yield each, each
