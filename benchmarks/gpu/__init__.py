"""Four minutes on a machine with a GPU: ``python -m benchmarks.gpu``, or ``make gpu``.

Such a machine may be bare: Python, NumPy, Arrow, Numba and CuPy, without Spark, typer, rich or a
network. So nothing here imports those, and what else is missing is said and left out.
"""
