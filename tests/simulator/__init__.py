"""Checks that need ``NUMBA_ENABLE_CUDASIM=1``; `tests.kernels.test_cuda` runs them in a child."""
