"""The structs of include/avsg.h. A test compiles the header and compares every size and offset."""

from __future__ import annotations

import ctypes as c

from ._arguments import WHOLE, whole
from .constants import MAX_SEGMENTS


def fields(kind, *names):
    """Returns the fields `names`, all of one ctypes type."""
    return [(name, kind) for name in names]


class I32s(c.Structure):
    """avsg_i32s: the address of an array of int32 and its length in elements."""

    _fields_ = [("data", c.c_void_p), ("len", c.c_size_t)]


class Chunk(c.Structure):
    """avsg_chunk: the address and the bytes of one range of rows."""

    _fields_ = [("data", c.c_void_p), ("bytes", c.c_size_t)]


class Region(c.Structure):
    """avsg_region: a range of the caller's memory."""

    _fields_ = [("data", c.c_void_p), ("bytes", c.c_size_t), ("device_address", c.c_uint64)]


class PoolPart(c.Structure):
    """avsg_pool_part: where some rows of one segment are."""

    _fields_ = [
        (name, c.c_size_t)
        for name in ("region", "offset", "segment", "first_layer", "layers", "layer_stride", "first_row", "rows")
    ]


class SizedStruct(c.Structure):
    """A struct that is zeroed and begins with its own size."""

    _fields_ = [("size", c.c_size_t)]

    def __init__(self, **values):
        super().__init__(c.sizeof(type(self)))
        kinds = dict(self._fields_)
        for name, value in values.items():
            setattr(self, name, whole(value, name, kinds[name]) if kinds[name] in WHOLE else value)


class Allocator(SizedStruct):
    """avsg_allocator. An allocator in Python would hold its lock, so that none is made here."""

    _fields_ = fields(c.c_void_p, "user", "allocate", "release")


class PoolConfig(SizedStruct):
    """avsg_pool_config."""

    _fields_ = [
        *fields(c.c_size_t, "layers", "rows", "segments"),
        *fields(c.c_size_t * MAX_SEGMENTS, "segment_bytes", "segment_stride"),
        ("chunk_bytes", c.c_size_t),
        ("pages", c.c_int32),
        ("reserved", c.c_uint32),
        ("allocator", c.c_void_p),
    ]


class PoolLayout(SizedStruct):
    """avsg_pool_layout."""

    _fields_ = [
        ("block_rows", c.c_size_t),
        *fields(c.c_size_t * MAX_SEGMENTS, "block_stride", "row_stride"),
        ("regions", c.c_void_p),
        ("region_count", c.c_size_t),
        ("parts", c.c_void_p),
        ("part_count", c.c_size_t),
    ]


class PoolInfo(SizedStruct):
    """avsg_pool_info."""

    _fields_ = [
        *fields(c.c_size_t, "layers", "rows", "segments"),
        *fields(c.c_size_t * MAX_SEGMENTS, "segment_bytes", "segment_stride"),
        *fields(c.c_size_t, "row_bytes", "bytes", "huge_bytes", "chunks"),
        *fields(c.c_int32, "pages", "role"),
    ]


class WorkersConfig(SizedStruct):
    """avsg_workers_config. An executor in Python would hold its lock, so that none is made here."""

    _fields_ = [
        *fields(c.c_uint32, "threads", "pin"),
        ("cpus", c.c_void_p),
        ("cpu_count", c.c_size_t),
        ("spin_us", c.c_int32),
        ("reserved", c.c_uint32),
        *fields(c.c_void_p, "executor", "user"),
    ]


class EngineConfig(SizedStruct):
    """avsg_engine_config.

    `lambda` is a keyword of Python, so that the field is called `lambda_`.
    """

    _fields_ = [
        ("device", c.c_char_p),
        *fields(c.c_uint32, "k", "tokens", "slots"),
        ("table", c.c_int32),
        *fields(c.c_uint32, "paper_a1", "paper_a2"),
        *fields(c.c_int32, "lifetime", "life"),
        ("lambda_", c.c_double),
        ("spread", c.c_uint32),
        ("retries", c.c_int32),
        ("page", c.c_uint32),
        *fields(c.c_int32, "machine", "strategy"),
        ("cores", c.c_uint32),
        ("states", c.c_size_t),
        *fields(c.c_char_p, "kernels", "runtime"),
        ("device_id", c.c_int32),
        *fields(c.c_uint32, "timeout_ms", "launches", "reserved"),
        ("workers", c.c_void_p),
        ("copier", c.c_int32),
        ("copier_ahead", c.c_uint32),
        ("layer_indexer", c.POINTER(c.c_uint32)),
        ("layer_indexers", c.c_size_t),
        ("buffer", c.c_void_p),
        *fields(c.c_int32, "global_slots", "slot_base"),
        ("allocator", c.c_void_p),
    ]


class CallerBuffer(SizedStruct):
    """avsg_caller_buffer."""

    _fields_ = [
        ("bases", c.c_void_p),
        *fields(c.c_size_t, "base_count", "block_slots"),
        *fields(c.c_size_t * MAX_SEGMENTS, "block_stride", "slot_stride"),
        ("block_table", c.c_void_p),
        *fields(c.c_size_t, "block_table_len", "blocks"),
    ]


class EngineMemory(SizedStruct):
    """avsg_engine_memory."""

    _fields_ = fields(c.c_size_t, "buffer", "tables")


class Memory(SizedStruct):
    """avsg_memory."""

    _fields_ = fields(
        c.c_size_t,
        *("pool", "engine_host", "engine_device", "plan_host", "plan_pinned", "plan_device"),
        *("staging_pinned", "staging_device"),
    )


class EngineInfo(SizedStruct):
    """avsg_engine_info."""

    _fields_ = [
        ("device", c.c_char * 16),
        *fields(c.c_char * 32, "machine", "copier"),
        *fields(c.c_uint32, "k", "tokens", "slots"),
        *fields(c.c_int32, "table", "lifetime", "life"),
        *fields(c.c_uint32, "spread", "retries", "page", "cores"),
        *fields(c.c_size_t, "states", "layers", "buffer_bytes"),
        *fields(c.c_uint32, "threads", "reserved"),
        ("indexers", c.c_size_t),
    ]


class EngineStats(SizedStruct):
    """avsg_engine_stats."""

    _fields_ = [
        *fields(c.c_uint64, "plans", "transfers", "appends", "queued", "hits", "misses", "evictions"),
        *fields(c.c_uint64, "transferred_bytes", "appended_bytes"),
        *fields(c.c_uint64, "plan_ns", "transfer_ns", "step_ns", "append_ns"),
    ]


class Buffer(SizedStruct):
    """avsg_buffer."""

    _fields_ = [("base", c.c_void_p), *fields(c.c_size_t, "slot_stride", "state_stride", "bytes")]


class PlanArrays(SizedStruct):
    """avsg_plan_arrays."""

    _fields_ = [
        ("k", c.c_size_t),
        *fields(c.c_void_p, "slot", "valid", "cu_q", "record"),
        *fields(c.c_void_p, "miss_position", "miss_id", "miss_slot", "miss_row"),
    ]


class PlanCounters(SizedStruct):
    """avsg_plan_counters."""

    _fields_ = [
        *fields(c.c_size_t, "requests", "rows", "selected", "hits", "misses"),
        *fields(c.c_int32, "status", "reserved"),
        ("number", c.c_uint64),
    ]


class PlanRequest(SizedStruct):
    """avsg_plan_request."""

    _fields_ = [
        *fields(c.c_size_t, "first_row", "rows"),
        *fields(c.c_void_p, "slot", "valid"),
        ("misses", c.c_size_t),
        *fields(c.c_void_p, "miss_position", "miss_id", "miss_slot", "miss_row"),
        *fields(c.c_int32, "status", "reserved"),
    ]


class Batch(SizedStruct):
    """avsg_batch."""

    _fields_ = [
        ("ids", I32s),
        *fields(c.c_size_t, "ids_stride", "k"),
        *fields(I32s, "cu_q", "state", "generation", "stable_len", "seq_len", "block_table"),
        *fields(c.c_size_t, "block_stride", "indexer", "rows"),
    ]


class Load(SizedStruct):
    """avsg_load."""

    _fields_ = [
        *fields(I32s, "ids", "block_table"),
        ("indexer", c.c_size_t),
        *fields(c.c_int32, "state", "generation", "seq_len", "reserved"),
    ]


class Fresh(SizedStruct):
    """avsg_fresh."""

    _fields_ = [
        ("segments", c.c_size_t),
        ("data", c.c_void_p * MAX_SEGMENTS),
        ("bytes", c.c_size_t * MAX_SEGMENTS),
    ]
