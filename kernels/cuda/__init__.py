"""Kernels compiled by ``numba.cuda``: the same modules, functions and signatures as on CPU.

Integers, counts, extremes and picked rows are equal to the CPU's, but for the sign of an extreme
that is zero. Sums and moments of floats may differ from the CPU's by rounding: rows of cells are
added exactly and rounded once (`gpu_windows.kernels.cuda.float_cells`), else they are combined in
an order that the rows of a call fix. So no two runs differ.
"""
