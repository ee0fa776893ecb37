"""Arrays of the host, and of the back end."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

HostInts: TypeAlias = NDArray[np.int64]
HostBools: TypeAlias = NDArray[np.bool_]
HostArray: TypeAlias = NDArray[Any]
#: `pyarrow.Array`, which has no types.
ArrowArray: TypeAlias = Any

# Where the kernels run: NumPy's on CPU, CuPy's on CUDA, which has no types.
DeviceArray: TypeAlias = Any
DeviceInts: TypeAlias = Any
DeviceFloats: TypeAlias = Any
DeviceBools: TypeAlias = Any
DeviceBytes: TypeAlias = Any
#: int64 or float64.
DeviceLane: TypeAlias = Any
#: (count: int64, the words of the mean, which is their sum: float64 each, the sum of squared
#: deviations from it: float64). Of no values all are 0.
DeviceMoments: TypeAlias = tuple[DeviceInts, DeviceFloats, DeviceFloats, DeviceFloats]
