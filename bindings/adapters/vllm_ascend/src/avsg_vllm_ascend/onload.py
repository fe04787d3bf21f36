"""What vLLM-Ascend 0.30's `SparseKVOffloadManager.onload_topk_kv` does, as kernels of AVSG in the current stream.

The manager plans on the host in the middle of each layer, with a buffer for each token. Here a kernel plans, the tokens
of a request share a buffer, and padded tokens are vacant. It has run on AVSG's simulated device only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import avsg
import numpy as np

#: Rows of a block of vLLM-Ascend's KV cache, and bytes of the two segments of a row: 512 and 64 elements of BF16.
BLOCK, ROW_BYTES = 128, (1024, 128)
#: `aclrtMemcpyKind` of a copy within the device.
DEVICE_TO_DEVICE = 3


def copier(runtime: str = "libascendcl.so") -> Callable[[int, int, int, int], None]:
    """Returns a function that puts a copy within the device into a stream: to, from, bytes, stream."""
    queue = ctypes.CDLL(runtime).aclrtMemcpyAsync
    address, size = ctypes.c_void_p, ctypes.c_size_t
    queue.argtypes = [address, size, address, size, ctypes.c_int, address]

    def copy(to: int, source: int, count: int, stream: int) -> None:
        if code := queue(to, count, source, count, DEVICE_TO_DEVICE, stream):
            raise RuntimeError(f"aclrtMemcpyAsync returned {code}")

    return copy


class TopkOnload:
    """The part of a manager that serves decode steps: `update` in each step, then the two others in each layer.

    `pool` has rows of `ROW_BYTES`. On tensor-parallel ranks one process makes it and the others attach it as readers:
    all plan and transfer, and the writer alone appends. `buffers` has for each layer the tensors of K [states, S, 1,
    512] and V [states, S, 1, 64], which attention reads: S is a multiple of 128. `layer_indexer` names the indexer of
    each layer: one with `skip_topk` has that of the layer before. `query_tokens` is N_q: 1 and the drafts.

    `new_buffer(n)` makes vLLM's `CpuGpuBuffer` of n int32, and `new_tensor(*shape)` a tensor of int32 zeros on the
    device. `stream` returns the current stream, and `copy` is that of `copier`. `options` are those of `avsg.Engine`.
    """

    def __init__(
        self,
        pool: avsg.Pool,
        buffers: Sequence[tuple[Any, Any]],
        layer_names: Sequence[str],
        *,
        max_num_reqs: int,
        query_tokens: int,
        max_blocks: int,
        new_buffer: Callable[[int], Any],
        new_tensor: Callable[..., Any],
        stream: Callable[[], int],
        copy: Callable[[int, int, int, int], None],
        layer_indexer: Sequence[int] | None = None,
        topk: int = 2048,
        **options: Any,
    ) -> None:
        states, slots, *_ = buffers[0][0].shape
        if states < max_num_reqs:
            raise ValueError(f"the buffers have {states} states, but need {max_num_reqs}, one for each request")
        self._engine = avsg.Engine(
            pool,
            k=topk,
            slots=slots,
            tokens=query_tokens,
            states=states,
            page=BLOCK,
            layer_indexer=layer_indexer,
            buffers=[tensor for pair in buffers for tensor in pair],
            device="ascend",
            **options,
        )
        self._layers = {name: layer for layer, name in enumerate(layer_names)}
        self._indexers = list(layer_indexer or [0] * len(buffers))
        self._appends, self._tokens, self._most = pool.info.role == avsg.Role.WRITER, query_tokens, max_num_reqs
        tokens, self._pages = max_num_reqs * query_tokens, slots // BLOCK
        # Requests of a step, and those that take the padded tokens of a graph.
        requests = 2 * max_num_reqs
        self._plans = [self._engine.new_plan(tokens, requests) for _ in set(self._indexers)]
        self._batches: dict[tuple[int, int], avsg.Batch] = {}
        self._fresh: dict[int, avsg.Fresh] = {}
        self._stream, self._copy, self._k = stream, copy, topk
        #: The state and the generation of each name of a request in the batch, and the states that are free.
        self._held: dict[str, tuple[int, int]] = {}
        self._free, self._generation = list(range(states))[::-1], 0
        self._cu_q, self._first = new_buffer(requests + 1), new_buffer(requests)
        self._state, self._generations = new_buffer(requests), new_buffer(requests)
        self._lengths = new_buffer(requests)
        self._blocks = new_tensor(requests, max_blocks)
        self._stable, self._seq = new_tensor(requests), new_tensor(requests)
        #: The pages of each token's state in the buffers, [tokens, S / 128]: `resident_block_table_npu`.
        self.resident_block_table = new_buffer(tokens * self._pages)

    def update(
        self,
        num_tokens: int,
        num_reqs: int,
        num_tokens_padded: int,
        num_reqs_padded: int,
        req_ids: Sequence[str],
        query_start_loc: np.ndarray,
    ) -> None:
        """Takes the arguments of `update_sparse_kv_offload_metadata`, on the host before a step runs or is replayed.

        A request that leaves the batch loses its state. A request without a name, as of a dummy run, is vacant.
        """
        names, requests = list(req_ids[:num_reqs]), self._requests(num_tokens_padded, num_reqs_padded)
        widths = np.diff(query_start_loc[: num_reqs + 1])
        if widths.size and widths.max() > self._tokens:
            raise ValueError(f"a request has {widths.max()} tokens, but at most {self._tokens}; raise query_tokens")
        for name in set(self._held).difference(names):
            self._free.append(self._held.pop(name)[0])
        cu_q, state, generation = self._cu_q.np, self._state.np, self._generations.np
        cu_q[: num_reqs + 1] = query_start_loc[: num_reqs + 1]
        # The padded tokens belong to vacant requests, so that no id of theirs gets a slot.
        padded = np.arange(1, requests - num_reqs + 1) * self._tokens
        cu_q[num_reqs + 1 : requests + 1] = np.minimum(num_tokens + padded, num_tokens_padded)
        state[:requests], generation[:requests] = -1, 0
        for row, name in enumerate(names):
            if name not in self._held:
                self._generation += 1
                self._held[name] = self._free.pop(), self._generation
            state[row], generation[row] = self._held[name]
        np.minimum(cu_q[:requests], num_tokens_padded - 1, out=self._first.np[:requests])
        self._lengths.np[:requests] = np.diff(cu_q[: requests + 1])
        of_token = np.repeat(np.maximum(state[:requests], 0), self._lengths.np[:requests])
        pages = self.resident_block_table.np[: num_tokens_padded * self._pages].reshape(-1, self._pages)
        pages[:] = of_token[:, None] * self._pages + np.arange(self._pages)
        for buffer in (self._first, self._state, self._generations, self._lengths):
            buffer.copy_to_gpu(requests)
        self._cu_q.copy_to_gpu(requests + 1)
        self.resident_block_table.copy_to_gpu(pages.size)

    def offload_new_kv(
        self,
        layer_name: str,
        slot_mapping: Any,
        k_cache_cpu: Any,
        v_cache_cpu: Any,
        k_cache_npu: Any,
        v_cache_npu: Any,
        k: Any,
        v: Any,
        has_prefill: bool = False,
        capturing: bool = False,
    ) -> None:
        """Notes a layer's rows of this step. `onload_topk_kv` reads them, and the writer then appends them."""
        if has_prefill:
            raise ValueError("a prefill was passed, but AVSG serves decode nodes; write its rows into the pool")
        self._fresh[self._layers[layer_name]] = avsg.Fresh(k, v)

    def onload_topk_kv(
        self,
        layer_name: str,
        num_tokens: int,
        num_reqs: int,
        block_table: Any,
        topk_indices_npu: Any,
        current_slots_npu: Any,
        req_ids_npu: Any,
        stable_prefix_lens_npu: Any,
        token_to_req_npu: Any = None,
        capturing: bool = False,
        skip_topk: bool = False,
    ) -> None:
        """Puts a layer's step into the current stream. Numbers of tokens and requests are those of the graph.

        `topk_indices_npu` has the ids of each token in int32 [tokens, K], -1 where there is none; `current_slots_npu`
        gets their slots. `stable_prefix_lens_npu` has an element for each token, of which the first one of each
        request counts. Names and tokens of requests are those of `update`: `req_ids_npu` and `token_to_req_npu` are
        not read. What padded tokens have in any of these does not matter.
        """
        layer, stream = self._layers[layer_name], self._stream()
        indexer = self._indexers[layer]
        plan, fresh = self._plans[indexer], self._fresh.pop(layer, None)
        if fresh is None:
            raise ValueError(f"{layer_name} has no rows of this step; call offload_new_kv before onload_topk_kv")
        requests = self._requests(num_tokens, num_reqs)
        key = num_tokens, requests
        if skip_topk:
            batch = self._batches[key]
            self._engine.transfer(plan, layer, fresh, stream)
        else:
            stable = stable_prefix_lens_npu.index_select(0, self._first.gpu[:requests])
            self._stable[:requests].copy_(stable)
            self._seq[:requests].copy_(stable + self._lengths.gpu[:requests])
            self._blocks[:num_reqs].copy_(block_table)
            batch = self._batch(key, topk_indices_npu, indexer)
            self._engine.step(batch, plan, layer, fresh, stream)
        if self._appends:
            self._engine.append(batch, layer, fresh, stream)
        slots = plan.device_view("slot").address
        self._copy(current_slots_npu.data_ptr(), slots, 4 * num_tokens * self._k, stream)

    def _requests(self, tokens: int, requests: int) -> int:
        """The requests of a batch with those that take its padded tokens."""
        if requests > self._most or tokens > self._most * self._tokens:
            most = f"{self._most} requests of {self._tokens} tokens"
            raise ValueError(f"{requests} requests and {tokens} tokens were passed, but at most {most}; raise both")
        return requests + -(-tokens // self._tokens)

    def _batch(self, key: tuple[int, int], ids: Any, indexer: int) -> avsg.Batch:
        """The batch of so many tokens and requests, whose other arrays stay where they are."""
        tokens, requests = key
        if key not in self._batches:
            per_request = {"state": self._state.gpu, "generation": self._generations.gpu}
            per_request |= {"stable_len": self._stable, "seq_len": self._seq, "block_table": self._blocks}
            arrays = {name: array[:requests] for name, array in per_request.items()}
            self._batches[key] = avsg.Batch(ids, cu_q=self._cu_q.gpu[: requests + 1], **arrays)
        batch = self._batches[key]
        batch.ids, batch.indexer = ids, indexer
        return batch
