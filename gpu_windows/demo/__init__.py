"""The demos: a year of departures from New York, in windows and joins on Spark; and as a stream.

Run them with ``gpu-windows demo``, ``python -m gpu_windows.demo`` or ``make demo``, and with
``--streaming`` or ``make demo-streaming``.
"""
