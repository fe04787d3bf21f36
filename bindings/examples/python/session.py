#!/usr/bin/env python3
"""A conversation that outlives its process: each run adds a turn behind the tokens that the file has.

  pip install ./bindings/python && python3 bindings/examples/python/session.py rows.avsg

The model is one layer of attention with random weights. A run reads the ids and the indexer's keys
of the session, and no row but those that it selects. It ends with status 1 if its answer differs
from that of a run which keeps all rows in memory.
"""

import os
import sys

import avsg
import numpy as np

K, ROWS, WIDTH, KEY, TURN = 64, 4096, 64, 16, 500
TOKEN = np.dtype([("id", np.int32), ("key", np.float32, KEY)])
RANDOM = np.random.default_rng(1)
TO_ROW, TO_KEY, TO_QUERY = (RANDOM.normal(size=(256, n)).astype(np.float32) for n in (WIDTH, KEY, KEY))


def rows_of(ids):
    """Returns the KV row of each token: it depends on the id and on the position."""
    return TO_ROW[ids] * np.cos(np.arange(len(ids), dtype=np.float32))[:, None]


def add_turn(pool, ids):
    """Computes tokens behind those of the session, and commits it."""
    first, end = pool.session(0).length, pool.session(0).length + len(ids)
    all_ids = np.concatenate([pool.read_tokens(0, first).view(TOKEN)["id"].ravel(), ids])
    new = np.zeros(len(ids), TOKEN)
    new["id"], new["key"] = ids, TO_KEY[ids]
    pool.write(0, first, rows_of(all_ids)[first:])
    pool.write_tokens(first, new.view(np.uint8))
    pool.commit(0, end, [0])


def answer(pool):
    """Returns the ids of the session, and attention of the last token to the rows that it selects."""
    tokens = pool.read_tokens(0, pool.session(0).length).view(TOKEN).ravel()
    with avsg.Engine(pool, k=K, slots=4 * K, tokens=1, states=1) as engine:
        batch, plan = avsg.Batch.zeros(1, K), engine.new_plan()
        batch.ids[0] = np.argsort(tokens["key"] @ TO_QUERY[tokens["id"][-1]])[-K:]
        batch.seq_len[0] = len(tokens)  # every row is in the pool
        engine.step(batch, plan, 0)
        return tokens["id"], engine.buffer()[0, plan.slots[0]].view(np.float32).sum(axis=0), batch.ids[0].copy()


def main():
    path = sys.argv[1]
    file = avsg.PoolFile(path, keep=True, sessions=1, session_rows=ROWS, token_bytes=TOKEN.itemsize)
    with avsg.Pool.open(path) if os.path.exists(path) else avsg.Pool(1, ROWS, row_bytes=4 * WIDTH, file=file) as pool:
        add_turn(pool, np.random.default_rng(pool.session(0).length).integers(0, 256, TURN).astype(np.int32))
        ids, attended, selected = answer(pool)
        same = np.array_equal(attended, rows_of(ids)[selected].sum(axis=0))
        print(f"{len(ids)} tokens, {pool.info.read_bytes} bytes read, the answer is {'right' if same else 'wrong'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
