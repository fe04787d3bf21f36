#!/usr/bin/env python3
"""A decode loop with the package avsg.

Every gathered row is compared with the row that was written.

  pip install ./bindings/python && python3 bindings/examples/python/decode.py

Two requests decode with one draft token each. Every other draft is rejected, so that its row is
computed anew in the next step.
"""

import sys

import avsg
import numpy as np

K, SLOTS, TOKENS, REQUESTS, ROW_BYTES = 128, 512, 2, 2, 256
PROMPT, STEPS = 3000, 200
CAPACITY = PROMPT + STEPS * TOKENS


def select(scores, length, rng):
    """Returns the ids of the K largest scores, which drift from step to step, in random order."""
    scores[:length] += rng.normal(0, 0.02, length)
    ids = np.argsort(scores[:length])[-K:]
    return rng.permutation(ids).astype(np.int32)


def main():
    rng = np.random.default_rng(1)
    blocks, lengths = 64, [PROMPT] * REQUESTS
    per_request = -(-CAPACITY // blocks)
    # The row of each token as it is at present: what attention must see.
    truth = rng.integers(0, 256, (REQUESTS, CAPACITY, ROW_BYTES), dtype=np.uint8)
    scores = rng.random((REQUESTS, CAPACITY))

    with avsg.Pool(layers=1, rows=REQUESTS * per_request * blocks, row_bytes=ROW_BYTES) as pool:
        engine = avsg.Engine(pool, k=K, slots=SLOTS, tokens=TOKENS, states=REQUESTS, page=blocks)
        plan = engine.new_plan()
        batch = avsg.Batch.zeros(REQUESTS, K, tokens=TOKENS, blocks=per_request)
        # The host blocks of both requests, shuffled as a paged allocator leaves them.
        batch.block_table[:] = rng.permutation(REQUESTS * per_request).reshape(REQUESTS, per_request)
        fresh_rows = np.empty((REQUESTS * TOKENS, ROW_BYTES), np.uint8)
        fresh, buffer = avsg.Fresh(fresh_rows), engine.buffer()

        for request in range(REQUESTS):
            for token in range(PROMPT):
                row = batch.block_table[request, token // blocks] * blocks + token % blocks
                pool.write_row(0, row, truth[request, token])

        wrong = checked = hits = misses = rejected = 0
        for step in range(STEPS):
            for request, length in enumerate(lengths):
                new = slice(length, length + TOKENS)
                truth[request, new] = rng.integers(0, 256, (TOKENS, ROW_BYTES), dtype=np.uint8)
                scores[request, new] = 2
                batch.stable_len[request], batch.seq_len[request] = length, length + TOKENS
                for token in range(TOKENS):
                    row = request * TOKENS + token
                    batch.ids[row] = select(scores[request], length + token + 1, rng)
                    fresh_rows[row] = truth[request, length + token]
            engine.step(batch, plan, 0, fresh)
            for row in range(REQUESTS * TOKENS):
                gathered = buffer[row // TOKENS, plan.slots[row]]
                wrong += int((gathered != truth[row // TOKENS, batch.ids[row]]).any(axis=1).sum())
            counters = plan.counters
            checked, hits, misses = checked + counters.selected, hits + counters.hits, misses + counters.misses
            engine.append(batch, 0, fresh)
            for request in range(REQUESTS):
                accepted = 2 - (step + request) % 2
                rejected += TOKENS - accepted
                scores[request, lengths[request] : lengths[request] + TOKENS] = 1
                lengths[request] += accepted

        print(f"avsg {avsg.__version__} on {engine.info.machine}: {STEPS} steps, {rejected} drafts rejected")
        print(f"{checked} rows checked, {100 * hits / checked:.2f} % hit, {misses} copied, {wrong} wrong")
        try:
            engine.new_plan(max_tokens=0)
            wrong += 1
        except avsg.InvalidError as error:
            print(f"a mistake: {error}")
        engine.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
