"""The numbers of include/avsg.h as enumerations.

A test compares every one of them with the header.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

ABI_VERSION = 1
MAX_SEGMENTS = 4
POOL_DESC_BYTES = 112


class Table(IntEnum):
    """Which table an engine keeps."""

    WIDE = 0
    PAPER = 1


class Lifetime(IntEnum):
    """What a hit makes of a slot's lifetime."""

    AUTO = 0
    CONSTANT = 1
    FREQUENCY = 2


class Machine(IntEnum):
    """Which vector machine the device "cpu" runs its kernels on."""

    AUTO = 0
    EMU = 1
    AVX2 = 2
    AVX512 = 3
    NEON = 4
    AVX512_LOADS = 5
    AVX512_GATHER = 6


class Copier(IntEnum):
    """How the device "cpu" copies rows."""

    AUTO = 0
    PLAIN = 1
    PREFETCH = 2
    STREAM = 3


class LogLevel(IntEnum):
    """The importance of a message."""

    ERROR = 1
    WARN = 2
    INFO = 3
    DEBUG = 4


class Strategy(IntEnum):
    """How misses are spread over cores."""

    BALANCED = 0
    REQUEST = 1
    POSITION = 2


class Pages(IntEnum):
    """The kind of pages that back a pool."""

    DEFAULT = 0
    HUGE_1G = 1
    HUGE_2M = 2
    THP = 3
    PLAIN = 4
    CALLER = 5


class MemoryKind(IntEnum):
    """What an allocator is asked for."""

    HOST = 0
    PINNED = 1
    DEVICE = 2


class Role(IntEnum):
    """What a process may do with a pool."""

    READER = 0
    WRITER = 1


class RequestStatus(IntFlag):
    """Status bits of a request. Ids that raise them were treated as padding."""

    ID_OUT_OF_RANGE = 1
    ROW_OUT_OF_POOL = 2
    TOO_MANY_SLOT_BLOCKS = 4
