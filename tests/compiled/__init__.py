"""The CUDA kernels as Numba compiles them, run on the CPU.

Numba's simulator runs the Python of kernels, in which numbers have the types of Python. Here the
LLVM code is run that NVVM would be given: with the types that Numba inferred, integers that wrap
around, and the arguments as a launch packs them. Memory is guarded: an access behind an array ends
the process, memory that nothing wrote has a pattern. `device` is in CuPy's place. Blocks run one
after the other, so what two of them do to each other is not seen, nor what NVVM makes of the code.
"""
