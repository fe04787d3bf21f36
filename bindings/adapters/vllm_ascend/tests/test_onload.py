"""Decode steps in vLLM-Ascend's shapes, types and paddings, in a stream of AVSG's simulated device.

AVSG_RUNTIME names the library of the runtime. `cargo build --release -p avsg-sim-so` makes the simulated one,
libavsg_ascendcl_sim.so; for another one AVSG_KERNELS names a folder of compiled kernels.
"""

import functools
import os
import subprocess
import sys

import avsg
import numpy as np
import pytest
from simulated import Buffer, Runtime, Tensor

from avsg_vllm_ascend.onload import BLOCK, ROW_BYTES, TopkOnload, copier

RUNTIME = os.environ.get("AVSG_RUNTIME")
pytestmark = pytest.mark.skipif(not RUNTIME, reason="AVSG_RUNTIME names no runtime")
K, SLOTS, TOKENS, REQUESTS, STATES = 2048, 4096, 2, 4, 5
#: The second layer has the ids of the first one (`skip_topk`).
LAYERS, INDEXERS = ["layers.0", "layers.1", "layers.2"], [0, 0, 1]
#: The blocks of a request, and the tokens of each request's prompt.
BLOCKS, PROMPTS = 40, {"a": 5000, "b": 90, "c": 2600, "d": 2100, "e": 4500, "f": 300, "g": 2048}
#: The names of each step's requests, which reject a draft or not.
STEPS = ["abcd", "abcd", "acd", "cad", "c", "cefg", "efgc"]
POISON = 0xA5A5


@functools.cache
def runtime():
    return Runtime(RUNTIME)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """The kernels of this geometry, as `avsg emit` writes them."""
    if "AVSG_KERNELS" in os.environ:
        return os.environ["AVSG_KERNELS"]
    folder = tmp_path_factory.mktemp("kernels")
    sizes = {"k": K, "slots": SLOTS, "tokens": TOKENS, "page": BLOCK}
    options = [f"--{name}={size}" for name, size in sizes.items()]
    subprocess.run([sys.executable, "-m", "avsg", "emit", *options, "--out", folder], check=True, capture_output=True)
    return folder


def rows_of(layer, name, tokens, versions):
    """What the rows of tokens hold: elements of 16 bits of both segments."""
    seeds = np.asarray(tokens) * 40503 + np.asarray(versions) * 9176 + layer * 131 + ord(name) * 977
    return [
        ((seeds[:, None] * 31 + np.arange(width // 2) * 7919 + width) >> 3).astype(np.uint16) for width in ROW_BYTES
    ]


class Rank:
    """A tensor-parallel rank: its tensors, and what it onloads from the pool."""

    def __init__(self, pool, kernels, max_num_reqs=REQUESTS):
        device, widths = runtime(), [width // 2 for width in ROW_BYTES]
        poison = [np.full((STATES, SLOTS, 1, width), POISON, np.uint16) for width in widths]
        self.buffers = [tuple(device.tensor(values, np.uint16) for values in poison) for _ in LAYERS]
        self.onload = TopkOnload(
            pool,
            self.buffers,
            LAYERS,
            max_num_reqs=max_num_reqs,
            query_tokens=TOKENS,
            max_blocks=BLOCKS,
            new_buffer=functools.partial(Buffer, device),
            new_tensor=device.zeros,
            stream=lambda: device.stream,
            copy=copier(RUNTIME),
            layer_indexer=INDEXERS,
            runtime=RUNTIME,
            kernels=kernels,
            cores=4,
        )
        self.slots = device.zeros(REQUESTS * TOKENS, K)

    def misses(self, layer):
        """The misses of each request of the layer's last plan."""
        summary = self.onload._plans[INDEXERS[layer]].device_view("summary")
        return Tensor(runtime(), summary.address, summary.shape, np.int32).read()[:, avsg.SUMMARY_MISSES]

    def expect_exact(self, layer, step):
        """Every id of a request's token has a slot of its page table with its row, and no other id has one."""
        slots, pages = self.slots.read(), self.onload.resident_block_table.gpu.read().reshape(-1, SLOTS // BLOCK)
        rows = [buffer.read().reshape(STATES * SLOTS, -1) for buffer in self.buffers[LAYERS.index(layer)]]
        for token, (name, ids) in enumerate(zip(step.owners, step.ids)):
            picked, found = ids[ids >= 0], slots[token, ids >= 0]
            assert (slots[token, ids < 0] == -1).all() and len(set(found)) == len(found) and (found >= 0).all()
            places = pages[token, found // BLOCK] * BLOCK + found % BLOCK
            wanted = rows_of(LAYERS.index(layer), name, picked, step.versions[name][picked])
            for have, want in zip(rows, wanted):
                assert (have[places] == want).all(), f"{layer}: a row of {name}"
        assert (slots[len(step.owners) : step.padded] == -1).all(), "padded tokens have slots"
        assert all((array[(STATES - 1) * SLOTS :] == POISON).all() for array in rows), "a vacant state was written"


class Step:
    """The arrays of one step, in the shapes and types of vLLM-Ascend, with garbage where a graph is padded."""

    def __init__(self, random, names, stable, versions, tables, number):
        widths = random.integers(1, TOKENS + 1, len(names))
        self.names, self.versions, self.padded = list(names), versions, REQUESTS * TOKENS
        self.cu_q = np.concatenate([[0], np.cumsum(widths)]).astype(np.int32)
        self.owners = [name for name, width in zip(names, widths) for _ in range(width)]
        real = len(self.owners)
        # The indexer selects for padded tokens, too, as if they were the first request's.
        all_ids = np.where(random.random((self.padded, 1)) < 0.5, random.integers(0, 2000, (self.padded, K)), -1)
        self.stable = np.full(self.padded, random.choice([-1, 0, 1 << 20]))
        for request, (name, first) in enumerate(zip(names, self.cu_q)):
            for token in range(first, self.cu_q[request + 1]):
                self.stable[token], end = stable[name], stable[name] + token - first + 1
                versions[name][end - 1] = number
                # A few ids change from token to token; the newest tokens are selected.
                recent = np.arange(max(end - K // 2, 0), end)
                others = np.random.default_rng([ord(name), number // 2]).permutation(len(recent) and end - len(recent))
                chosen = np.concatenate([recent, others[: K - len(recent)]])
                all_ids[token] = -1
                all_ids[token, : len(chosen)] = random.permutation(chosen)
        self.all_ids, self.ids = all_ids.astype(np.int32), all_ids[:real]
        self.token_to_req = np.full(self.padded, random.choice([0, 99]), np.int32)
        self.token_to_req[:real] = np.repeat(np.arange(len(names)), widths)
        self.table = np.full((REQUESTS, BLOCKS), -1, np.int32)
        self.table[: len(names)] = [tables[name] for name in names]

    def union(self, request, first=0):
        """The ids from `first` on that a request's tokens select."""
        ids = self.ids[self.cu_q[request] : self.cu_q[request + 1]]
        return len(np.unique(ids[ids >= first]))

    def run(self, ranks):
        """Runs all layers on all ranks, and checks every row."""
        device, real = runtime(), len(self.owners)
        ids, stable = device.tensor(self.all_ids), device.tensor(self.stable)
        table, token_to_req = device.tensor(self.table), device.tensor(self.token_to_req)
        req_ids = device.tensor(self.token_to_req, np.int64)
        for rank in ranks:
            rank.onload.update(real, len(self.names), self.padded, REQUESTS, self.names, self.cu_q)
        for layer, name in enumerate(LAYERS):
            fresh = [np.full((self.padded, 1, 1, width // 2), 7, np.uint16) for width in ROW_BYTES]
            for token, owner in enumerate(self.owners):
                at = self.stable[token] + token - self.owners.index(owner)
                for rows, row in zip(fresh, rows_of(layer, owner, [at], [self.versions[owner][at]])):
                    rows[token, 0, 0] = row[0]
            k, v = (device.tensor(rows, np.uint16) for rows in fresh)
            for rank in ranks:
                rank.onload.offload_new_kv(name, None, None, None, None, None, k, v)
                arguments = (table, ids, rank.slots, req_ids, stable, token_to_req)
                skip = layer > 0 and INDEXERS[layer] == INDEXERS[layer - 1]
                rank.onload.onload_topk_kv(name, self.padded, REQUESTS, *arguments, skip_topk=skip)
                rank.expect_exact(name, self)
                assert not rank.misses(layer)[len(self.names) :].any(), "a padded token was copied"


def test_padded_graphs_of_drafts_have_every_row_on_each_rank_and_copy_none_for_padding(kernels):
    random, tables, stable, versions = np.random.default_rng(8), {}, {}, {}
    blocks = random.permutation(REQUESTS * BLOCKS)
    pool = avsg.Pool(len(LAYERS), len(blocks) * BLOCK, ROW_BYTES, pages=avsg.Pages.PLAIN)
    descriptor, fd = pool.export()
    ranks = [Rank(pool, kernels), Rank(avsg.Pool.attach(descriptor, fd), kernels)]
    os.close(fd)
    for number, names in enumerate(STEPS, 1):
        for name in [name for name in tables if name not in names]:
            blocks = np.concatenate([blocks, tables.pop(name)])
        for name in set(names).difference(tables):
            # The prompt's rows come from a prefill node.
            tables[name], blocks, stable[name] = blocks[:BLOCKS], blocks[BLOCKS:], PROMPTS[name]
            versions[name] = np.zeros(BLOCKS * BLOCK, int)
            for layer in range(len(LAYERS)):
                rows = rows_of(layer, name, np.arange(BLOCKS * BLOCK), versions[name])
                for at, block in enumerate(tables[name]):
                    pool.write(layer, block * BLOCK, *(part[at * BLOCK : (at + 1) * BLOCK] for part in rows))
        step = Step(random, names, stable, versions, tables, number)
        step.run(ranks)
        if number == 1:
            assert [ranks[1].misses(0)[r] for r in range(4)] == [step.union(r) for r in range(4)]
        # The same batch again: rows that were fresh are copied, and no other.
        step.run(ranks)
        for request, name in enumerate(names):
            assert all(rank.misses(2)[request] == step.union(request, stable[name]) for rank in ranks)
            stable[name] += random.integers(1, step.cu_q[request + 1] - step.cu_q[request] + 1)


def test_what_a_step_cannot_be_is_refused(kernels):
    pool = avsg.Pool(len(LAYERS), BLOCK, ROW_BYTES)
    with pytest.raises(ValueError, match="the buffers have 5 states, but need 6, one for each request"):
        Rank(pool, kernels, max_num_reqs=6)
    onload = Rank(pool, kernels).onload
    with pytest.raises(ValueError, match="a request has 3 tokens, but at most 2; raise query_tokens"):
        onload.update(3, 1, 4, 2, ["a"], np.array([0, 3]))
    with pytest.raises(ValueError, match="5 requests and 10 tokens were passed, but at most 4 requests of 2 tokens"):
        onload.update(10, 5, 10, 5, list("abcde"), np.arange(0, 12, 2))
    with pytest.raises(ValueError, match="AVSG serves decode nodes"):
        onload.offload_new_kv("layers.0", None, None, None, None, None, None, None, has_prefill=True)
    with pytest.raises(ValueError, match="layers.0 has no rows of this step; call offload_new_kv before"):
        onload.onload_topk_kv("layers.0", 8, 4, None, None, None, None, None)
