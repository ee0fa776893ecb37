"""Contract of both back ends: the one place that types and documents their functions.

A back end is a package, `gpu_windows.kernels.cpu` or `gpu_windows.kernels.cuda`, with the modules
that `modules.Modules` names; each has the functions of its Protocol. mypy compares the types where
``modules.py`` of the package puts the modules together. A test compares the names of parameters and
which arrays are the host's, and sees that nothing public is missing here or there.

All arrays are one-dimensional and contiguous. In shapes n counts rows, m entries (non-empty slices
of keys), s panes, r runs; ``count`` is that of the groups or windows. Times are int64 ticks. A
function changes no argument but those that it calls ``out``, and checks none: an operator has done
that.

Integers, counts, extremes and picked rows are equal on both. Floats are added in another order on a
device, so sums may differ in the last bits; but no two runs of a back end differ.

Of CUDA any function may raise `gpu_windows.errors.DeviceMemoryError`, after which a smaller batch
may fit, and `gpu_windows.errors.DeviceFailedError`, after which this process reaches no device.
"""
