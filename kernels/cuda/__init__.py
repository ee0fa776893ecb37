"""Kernels compiled by ``numba.cuda``: the same modules, functions and signatures as on CPU.

Integers, counts, extremes and picked rows are equal to the CPU's. Sums and moments of floats are
combined in another order (and with fused multiply-adds), and may differ from the CPU's in the
last bits. The order is fixed by the rows of a key alone: no two runs differ, whatever other keys
are in the call.
"""
