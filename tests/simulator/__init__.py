"""Checks that need ``NUMBA_ENABLE_CUDASIM=1``; `tests.test_kernels_cuda` runs them in a child."""
