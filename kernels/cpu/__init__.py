"""Kernels compiled by ``numba.njit``, one thread each."""
