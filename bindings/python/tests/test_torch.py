"""torch's tensors and custom operators.

torch is gigabytes, so that these tests are in the thorough tier.
"""

import sys

import numpy as np
import pytest
from conftest import THOROUGH, make_deployment

import avsg

pytestmark = pytest.mark.thorough
if THOROUGH:
    torch = pytest.importorskip("torch")


class Torch:
    """A deployment whose arrays are tensors."""

    def __init__(self, **options):
        from avsg import torch_ops

        self.made = make_deployment(**options)
        engine, plan = self.made.engine, self.made.plan
        self.numbers = torch_ops.number(engine), torch_ops.number(plan)

        def of(*values):
            return torch.tensor(values, dtype=torch.int32)

        self.ids = torch.arange(16, dtype=torch.int32)[None]
        self.per_request = [of(0, 1), of(0), of(1), of(511), of(512)]
        self.fresh = [torch.full((1, 48), 5, dtype=torch.uint8)]
        self.slots = torch.from_dlpack(plan.view("slot"))
        self.buffers = [torch.from_dlpack(engine.view(0))]

    def step_arguments(self, ids=None):
        ids = self.ids if ids is None else ids
        return (*self.numbers, 0, ids, *self.per_request, None, self.fresh, self.slots, self.buffers)

    def append_arguments(self):
        return (*self.numbers, 0, self.ids, *self.per_request, None, self.fresh, self.slots)

    def expected(self, ids):
        rows = torch.from_numpy(self.made.rows[0].copy())
        rows[511] = 5
        return rows[ids[0].long()]


@pytest.fixture
def on_torch():
    return Torch()


def test_tensors_share_the_librarys_memory(on_torch):
    assert on_torch.slots.data_ptr() == on_torch.made.plan.slots.ctypes.data
    assert on_torch.buffers[0].data_ptr() == on_torch.made.engine.buffer().ctypes.data
    batch = avsg.Batch(
        on_torch.ids, **dict(zip(("cu_q", "state", "generation", "stable_len", "seq_len"), on_torch.per_request))
    )
    on_torch.made.engine.step(batch, on_torch.made.plan, 0, avsg.Fresh(*on_torch.fresh))
    assert (on_torch.buffers[0][0, on_torch.slots[0].long()] == on_torch.expected(on_torch.ids)).all()


def test_operators_give_exact_rows(on_torch):
    for first in (0, 100, 496):
        on_torch.ids.copy_(torch.arange(first, first + 16))
        torch.ops.avsg.step(*on_torch.step_arguments())
        assert (on_torch.buffers[0][0, on_torch.slots[0].long()] == on_torch.expected(on_torch.ids)).all()
        torch.ops.avsg.append(*on_torch.append_arguments())
    assert (on_torch.made.pool.read_row(0, 511) == 5).all()


def test_plan_and_transfer_do_what_step_does(on_torch):
    numbers, slots = on_torch.numbers, on_torch.slots
    torch.ops.avsg.plan(*numbers, on_torch.ids, *on_torch.per_request, None, slots)
    torch.ops.avsg.transfer(*numbers, 0, slots, on_torch.fresh, on_torch.buffers)
    assert (on_torch.buffers[0][0, slots[0].long()] == on_torch.expected(on_torch.ids)).all()


def test_an_id_without_a_row_raises_unless_the_caller_reads_the_status(on_torch):
    on_torch.ids[0, 2] = 512
    numbers, slots, arguments = on_torch.numbers, on_torch.slots, on_torch.step_arguments()
    plan = (*numbers, on_torch.ids, *on_torch.per_request, None, slots)
    for call in (lambda: torch.ops.avsg.step(*arguments), lambda: torch.ops.avsg.plan(*plan)):
        with pytest.raises(avsg.InvalidError, match="request 0 selects id 512, but its seq_len is 512"):
            call()
    for call in (
        lambda: torch.ops.avsg.step(*arguments, check=False),
        lambda: torch.ops.avsg.plan(*plan, check=False),
        lambda: torch.compile(lambda: torch.ops.avsg.plan(*plan, check=False), backend="aot_eager")(),
    ):
        call()
        assert on_torch.made.plan.status.tolist() == [1] and slots[0].tolist().index(-1) == 2
        torch.ops.avsg.transfer(*numbers, 1, slots, on_torch.fresh, [])


def test_operators_plan_for_an_indexer():
    on_torch = Torch(layer_indexer=[0, 1])
    numbers, slots = on_torch.numbers, on_torch.slots
    for indexer in (1, 0):
        with pytest.raises(avsg.InvalidError, match=f"ids come from indexer {indexer}"):
            torch.ops.avsg.step(*numbers, indexer, *on_torch.step_arguments()[3:], indexer=1 - indexer)
        torch.ops.avsg.plan(*numbers, on_torch.ids, *on_torch.per_request, None, slots, indexer)
        torch.ops.avsg.transfer(*numbers, indexer, slots, on_torch.fresh, [])


def test_a_compiled_graph_gives_exact_rows(on_torch):
    def decode(ids, slots, buffers):
        torch.ops.avsg.step(*on_torch.numbers, 0, ids, *on_torch.per_request, None, on_torch.fresh, slots, [buffers])
        rows = buffers[0, slots[0].long()].clone()
        torch.ops.avsg.append(*on_torch.numbers, 0, ids, *on_torch.per_request, None, on_torch.fresh, slots)
        return rows

    compiled = torch.compile(decode, backend="aot_eager", fullgraph=True)
    for first in (0, 8, 300, 496):
        ids = torch.arange(first, first + 16, dtype=torch.int32)[None]
        assert (compiled(ids, on_torch.slots, on_torch.buffers[0]) == on_torch.expected(ids)).all()
        assert (on_torch.made.engine.buffer()[0, on_torch.made.plan.slots[0]] == on_torch.expected(ids).numpy()).all()


def test_opcheck_accepts_every_operator(on_torch):
    numbers, slots = on_torch.numbers, on_torch.slots
    torch.library.opcheck(torch.ops.avsg.step.default, on_torch.step_arguments())
    torch.library.opcheck(torch.ops.avsg.plan.default, (*numbers, on_torch.ids, *on_torch.per_request, None, slots))
    torch.library.opcheck(torch.ops.avsg.transfer.default, (*numbers, 0, slots, on_torch.fresh, on_torch.buffers))
    torch.library.opcheck(torch.ops.avsg.append.default, on_torch.append_arguments())


def test_numbers_of_dead_objects_are_refused(on_torch):
    from avsg import torch_ops

    engine_number = on_torch.numbers[0]
    with pytest.raises(avsg.HandleError, match="999 is not the number of engines alive here"):
        torch.ops.avsg.step(999, *on_torch.step_arguments()[1:])
    with pytest.raises(avsg.HandleError, match=f"{engine_number} is not the number of plans"):
        torch.ops.avsg.step(engine_number, engine_number, *on_torch.step_arguments()[2:])
    with pytest.raises(TypeError, match="target is of type Pool"):
        torch_ops.number(on_torch.made.pool)
    with pytest.raises(avsg.InvalidError, match="layer is -1"):
        torch.ops.avsg.step(*on_torch.numbers, -1, *on_torch.step_arguments()[3:])
    with pytest.raises(avsg.InvalidError, match="layer"):
        torch.ops.avsg.step(*on_torch.numbers, 9, *on_torch.step_arguments()[3:])


def test_a_bfloat16_row_is_fresh_as_it_is():
    pool = avsg.Pool(1, 64, 32)
    engine = avsg.Engine(pool, k=4, slots=64, cores=1)
    batch, plan, row = avsg.Batch.zeros(1, 4), engine.new_plan(), torch.randn(1, 16).bfloat16()
    batch.ids[0, 0], batch.stable_len[0], batch.seq_len[0] = 0, 0, 1
    engine.step(batch, plan, 0, avsg.Fresh(row))
    rows = torch.from_dlpack(engine.view()).view(torch.bfloat16)
    assert (rows[0, plan.slots[0, 0]] == row).all()
    kept = torch.randn(64, 2, 16).bfloat16()
    pool.write(0, 0, kept[:, 1])
    assert (torch.from_numpy(np.concatenate(pool.blocks(0))).view(torch.bfloat16) == kept[:, 1]).all()
    assert np.asarray(plan.slots).dtype == np.int32


def wrapper():
    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), named=None):
            raise NotImplementedError

    return torch.Tensor._make_wrapper_subclass(Wrapper, (4,), dtype=torch.int32)


def fake():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(4)


def freed():
    tensor = torch.zeros(4)
    tensor.untyped_storage().resize_(0)
    return tensor


NO_VALUES = {
    "requires a gradient, .* pass tensor.detach": lambda: torch.zeros(4, requires_grad=True),
    "a conjugate .* pass tensor.resolve_conj": lambda: torch.zeros(4, dtype=torch.complex64).conj(),
    "a negative .* pass tensor.resolve_neg": lambda: torch.zeros(4, dtype=torch.complex64).conj().imag,
    "sparse; pass tensor.to_dense": lambda: torch.eye(4).to_sparse(),
    "layout torch.sparse_csr; pass tensor.to_dense": lambda: torch.eye(4).to_sparse_csr(),
    "quantized; pass tensor.int_repr": lambda: torch.quantize_per_tensor(torch.zeros(4), 0.1, 0, torch.qint8),
    "on the device meta": lambda: torch.zeros(4, device="meta"),
    "nested tensor; pass torch.nested.to_padded": lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
    "of type FakeTensor, which wraps": fake,
    "of type Wrapper, which wraps": wrapper,
    "without memory of its own": freed,
}


@pytest.mark.parametrize("words", NO_VALUES)
def test_a_tensor_whose_values_are_not_its_bytes_is_refused(words):
    tensor, pool = NO_VALUES[words](), avsg.Pool(1, 64, 16)
    for call in (avsg.Fresh, lambda rows: pool.write(0, 0, rows), lambda rows: pool.write_row(0, 0, rows)):
        with pytest.raises(TypeError, match=words):
            call(tensor)


def test_a_tensor_that_vmap_or_a_subclass_without_memory_stands_for_is_refused():
    def seen(row):
        with pytest.raises(TypeError, match="without memory of its own"):
            avsg.Fresh(row)
        return row

    torch.vmap(seen)(torch.zeros(2, 4))
    avsg.Fresh(torch.zeros(4).as_subclass(type("Plain", (torch.Tensor,), {})))
    avsg.Fresh(torch.nn.Parameter(torch.zeros(4), requires_grad=False))


def test_a_closed_plan_keeps_no_tensors_of_the_operators(on_torch):
    torch.ops.avsg.step(*on_torch.step_arguments())
    made, tensors = on_torch.made, [on_torch.ids, *on_torch.fresh]
    found = [sys.getrefcount(tensor) for tensor in tensors]
    made.plan.close()
    assert all(sys.getrefcount(tensor) < count for tensor, count in zip(tensors, found))
