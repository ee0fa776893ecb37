"""Kernels compiled by ``numba.cuda``: the same modules, functions and signatures as on CPU.

Integers, counts and picked rows are equal to the CPU's. Sums and moments of floats are combined
in another (fixed) order and may differ from the CPU's in the last bits; they never differ between
two runs, and never with other keys or other batches in the same call.
"""
