"""Where to train, by name."""

from enum import StrEnum


class Device(StrEnum):
    """Where to train."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
