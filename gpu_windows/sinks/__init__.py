"""Where the results of streaming queries go.

A new sink is a module here with a `Sink` and a `SinkWriter` (`gpu_windows.runners.sink`), and its
export in `gpu_windows`; `function` is the smallest. Sinks import PySpark and the glue within
methods, because queries on Arrow tables need neither. The glue knows the base classes only.
"""
