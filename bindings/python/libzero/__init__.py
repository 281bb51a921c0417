"""libzero for Python: process groups, sharded buffers and ZeRO optimizers over NumPy arrays.

The headers zero/*.h are the manual; names here are those of C without their prefix: zero_group_all_reduce is Group.all_reduce,
ZERO_KEY_STAGE is Key.STAGE. README.md of the package says what is different.
"""

from .bfloat16 import from_bf16, to_bf16
from .buffer import Buffer, Shard
from .checkpoint import Checkpoint
from .config import Config, bounds
from .device import DeviceArray
from .elements import as_bf16, dtype_nbytes, numpy_dtype
from .error import Error
from .generated import (
    ABI_MAJOR,
    ABI_MINOR,
    MPI_WORLD,
    VERSION_MAJOR,
    VERSION_MINOR,
    VERSION_PATCH,
    CheckpointResult,
    Code,
    Divisor,
    Dtype,
    Feature,
    Finding,
    Initialiser,
    Key,
    KeyBounds,
    Master,
    Memory,
    MemoryStats,
    MicroStep,
    Nonfinite,
    Operation,
    Part,
    Reduce,
    Rounding,
    Scope,
    ServerOrder,
    ServerResult,
    ServerRule,
    Slot,
    Snapshot,
    Source,
    Status,
    StepResult,
    StepStats,
    Sync,
    TextForm,
    Tier,
    TrafficStats,
    Unfilled,
    VerifyResult,
)
from .gradients import Gradients
from .group import Group
from .library import abi_version, describe, has_feature, status_name, version
from .optimizer import Optimizer
from .param import KeptSlot, Param, View
from .save import Save, list_saves, prunable_saves, remove_save
from .saving import Saving
from .server import Server

__version__ = f"{VERSION_MAJOR}.{VERSION_MINOR}.{VERSION_PATCH}"

__all__ = [
    "ABI_MAJOR",
    "ABI_MINOR",
    "Buffer",
    "Checkpoint",
    "CheckpointResult",
    "Code",
    "Config",
    "DeviceArray",
    "Divisor",
    "Dtype",
    "Error",
    "Feature",
    "Finding",
    "Gradients",
    "Group",
    "Initialiser",
    "KeptSlot",
    "Key",
    "KeyBounds",
    "MPI_WORLD",
    "Master",
    "Memory",
    "MemoryStats",
    "MicroStep",
    "Nonfinite",
    "Operation",
    "Optimizer",
    "Param",
    "Part",
    "Reduce",
    "Rounding",
    "Save",
    "Saving",
    "Scope",
    "Server",
    "ServerOrder",
    "ServerResult",
    "ServerRule",
    "Shard",
    "Slot",
    "Snapshot",
    "Source",
    "Status",
    "StepResult",
    "StepStats",
    "Sync",
    "TextForm",
    "Tier",
    "TrafficStats",
    "Unfilled",
    "VERSION_MAJOR",
    "VERSION_MINOR",
    "VERSION_PATCH",
    "VerifyResult",
    "View",
    "abi_version",
    "as_bf16",
    "bounds",
    "describe",
    "dtype_nbytes",
    "from_bf16",
    "has_feature",
    "list_saves",
    "numpy_dtype",
    "prunable_saves",
    "remove_save",
    "status_name",
    "to_bf16",
    "version",
]
