"""The demos: a year of departures from New York, in windows and joins on Spark; and as a stream.

Run them with ``make demo`` or ``python -m examples.flights``, and with ``make demo-streaming`` or
``--streaming``.
"""
