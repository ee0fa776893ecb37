"""The demo: a year of departures from New York, in sliding windows on Spark.

Run it with ``gpu-windows demo``, ``python -m gpu_windows.demo`` or ``make demo``.
"""
