"""Benchmarks of gpu_windows against its peers: ``python -m benchmarks NAME``.

`benchmarks.suite` holds one small file a benchmark, `benchmarks.engines` how each engine writes
the query, and the modules beside them how anything is measured, compared and shown.
"""
