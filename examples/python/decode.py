#!/usr/bin/env python3
"""A decode loop over libavsg with ctypes and NumPy, which needs no build step.

  python3 decode.py [PATH/TO/libavsg.so]

The default is the environment variable AVSG_LIBRARY, and else libavsg.so.1 on the loader's path.
"""

import ctypes as c
import os
import sys

import numpy as np

ABI = 1
SEGMENTS = 4


class I32s(c.Structure):
    """avsg_i32s: the address and length of an array, which the caller keeps a reference to."""

    _fields_ = [("data", c.c_void_p), ("len", c.c_size_t)]

    def __init__(self, array):
        assert array.dtype == np.int32 and array.flags.c_contiguous
        super().__init__(array.ctypes.data, array.size)


def sized(name, fields):
    """Defines a struct of the header, which is zeroed and has its size set."""

    def init(self, **values):
        c.Structure.__init__(self, c.sizeof(type(self)), **values)

    return type(name, (c.Structure,), {"_fields_": [("size", c.c_size_t), *fields], "__init__": init})


def fields_of(kind, *names):
    return [(name, kind) for name in names]


EngineConfig = sized("avsg_engine_config", [
    ("device", c.c_char_p), *fields_of(c.c_uint32, "k", "tokens", "slots"), ("table", c.c_int32),
    *fields_of(c.c_uint32, "paper_a1", "paper_a2"), *fields_of(c.c_int32, "lifetime", "life"),
    ("lambda_", c.c_double), ("spread", c.c_uint32), ("retries", c.c_int32), ("page", c.c_uint32),
    *fields_of(c.c_int32, "machine", "strategy"), ("cores", c.c_uint32), ("states", c.c_size_t)])
PoolConfig = sized("avsg_pool_config", [
    *fields_of(c.c_size_t, "layers", "rows", "segments"),
    *fields_of(c.c_size_t * SEGMENTS, "segment_bytes", "segment_stride"),
    ("chunk_bytes", c.c_size_t), ("pages", c.c_int32), ("reserved", c.c_uint32)])
Batch = sized("avsg_batch", [
    ("ids", I32s), *fields_of(c.c_size_t, "ids_stride", "k"),
    *fields_of(I32s, "cu_q", "state", "generation", "stable_len", "seq_len", "block_table"),
    ("block_stride", c.c_size_t)])
Fresh = sized("avsg_fresh", [
    ("segments", c.c_size_t), ("data", c.c_void_p * SEGMENTS), ("bytes", c.c_size_t * SEGMENTS)])
PlanArrays = sized("avsg_plan_arrays", [
    ("k", c.c_size_t),
    *fields_of(c.POINTER(c.c_int32), "slot", "valid", "cu_q", "record", "miss_position",
        "miss_id", "miss_slot", "miss_row")])
Counters = sized("avsg_plan_counters", [
    *fields_of(c.c_size_t, "requests", "rows", "selected", "hits", "misses"),
    *fields_of(c.c_int32, "status", "reserved")])
Buffer = sized("avsg_buffer", [
    ("base", c.c_void_p), *fields_of(c.c_size_t, "slot_stride", "state_stride", "bytes")])


class Avsg:
    """The library: `avsg.engine_step(..)` calls avsg_engine_step and raises an error if the call fails."""

    def __init__(self, path):
        self.lib = c.CDLL(path)
        self.lib.avsg_last_error.restype = c.c_char_p
        self.lib.avsg_status_name.restype = c.c_char_p
        if self.lib.avsg_abi_version() != ABI:
            raise RuntimeError(f"{path} has interface {self.lib.avsg_abi_version()}, this program {ABI}")

    def __getattr__(self, name):
        function = getattr(self.lib, "avsg_" + name)

        def call(*args):
            # The functions used here take every number as a size_t.
            status = function(*(c.c_size_t(a) if isinstance(a, int) else a for a in args))
            if status:
                name, text = self.lib.avsg_status_name(status), self.lib.avsg_last_error()
                raise RuntimeError(f"{name.decode()}: {text.decode()}")

        return call


def array_of(value):
    return np.array([value], np.int32)


def main():
    default = "libavsg.so.1"
    path = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("AVSG_LIBRARY", default)
    avsg = Avsg(path)
    k, slots, row_bytes, prompt, steps = 128, 512, 256, 3000, 200
    rows = np.random.default_rng(1).integers(0, 256, (prompt + steps, row_bytes), dtype=np.uint8)

    pool, engine, plan = c.c_void_p(), c.c_void_p(), c.c_void_p()
    kv = PoolConfig(layers=1, rows=prompt + steps, segments=1)
    kv.segment_bytes[0] = row_bytes
    avsg.pool_create(c.byref(kv), c.byref(pool))
    config = EngineConfig(k=k, tokens=1, slots=slots, states=1)
    avsg.engine_create(c.byref(config), pool, c.byref(engine))
    avsg.plan_create(engine, 1, 1, c.byref(plan))
    for i in range(prompt):
        avsg.pool_write_row(pool, 0, i, rows[i].ctypes.data_as(c.c_void_p), row_bytes)

    # NumPy arrays over the engine's memory, without a copy.
    out, view = PlanArrays(), Buffer()
    avsg.plan_get_arrays(plan, c.byref(out))
    avsg.engine_buffer(engine, 0, 0, c.byref(view))
    slot = np.ctypeslib.as_array(out.slot, (k,))
    pointer = c.cast(view.base, c.POINTER(c.c_uint8))
    device = np.ctypeslib.as_array(pointer, (slots, view.slot_stride))[:, :row_bytes]

    scores = np.random.default_rng(2).random(prompt + steps)
    selected = hits = wrong = 0
    for step in range(steps):
        length = prompt + step
        # The scores of the indexer drift, and the newest token is always selected.
        scores[:length] += np.random.default_rng(step).normal(0, 0.02, length)
        scores[length] = 2
        ids = np.argsort(scores[: length + 1])[-k:].astype(np.int32)
        np.random.default_rng(step).shuffle(ids)
        arrays = {
            "ids": ids, "cu_q": np.array([0, 1], np.int32), "state": array_of(0), "generation": array_of(1),
            "stable_len": array_of(length), "seq_len": array_of(length + 1),
        }
        batch = Batch(ids_stride=k, k=k, **{name: I32s(array) for name, array in arrays.items()})
        fresh = Fresh(segments=1)
        fresh.data[0], fresh.bytes[0] = rows[length].ctypes.data, row_bytes
        avsg.engine_step(engine, c.byref(batch), plan, 0, c.byref(fresh), None)
        wrong += int((device[slot] != rows[ids]).any(axis=1).sum())
        counters = Counters()
        avsg.plan_get_counters(plan, c.byref(counters))
        selected, hits = selected + counters.selected, hits + counters.hits
        avsg.engine_append(engine, c.byref(batch), 0, c.byref(fresh), None)
        scores[length] = 1

    print(f"{steps} steps, {selected} rows selected, {100 * hits / selected:.2f} % hit, {wrong} wrong")
    try:
        avsg.plan_create(engine, 0, 1, c.byref(plan))
        wrong += 1
    except RuntimeError as error:
        print(f"a mistake: {error}")
    avsg.engine_destroy(engine)
    avsg.pool_destroy(pool)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
