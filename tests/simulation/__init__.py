"""Streaming queries in process, from seeds: cuts, crashes and shards must not change anything.

`tests.simulation.draw` makes a case of a seed, `tests.simulation.execution` runs it as Spark would,
`tests.simulation.expected` as if nothing had ever happened, and `tests.simulation.differences`
compares. A case that fails is made smaller by `tests.simulation.shrink`.
"""
