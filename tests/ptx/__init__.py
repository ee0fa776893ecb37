"""The CUDA kernels' real PTX, run on this CPU.

NVVM makes the PTX, as for a device. It is translated to C, instruction by instruction (`program`,
`instructions`, `translation`), and compiled together with what stands for the device's memory and
its threads (`machine`, `build`, `kernel`). `device` is in the place of CUDA, so whatever asks for
``device="cuda"`` can be tried; `arrays` is in CuPy's.

Every access is checked: within an array, aligned, of what something wrote, of shared memory too;
threads of a block come to the same barrier. In which order the threads of all blocks run is a
`kernel.Mode`. What ptxas and the driver make of PTX is not shown, nor time, nor warps.
"""
