"""Random workloads: after every step each selected id's slot holds the present bytes of its row."""

import numpy as np
import pytest
from conftest import make_deployment

import avsg


class Workload:
    """Requests that join, leave, decode and have drafts rejected, with what every row must hold."""

    def __init__(self, seed, *, segments, tokens, states, page, slots=128, **options):
        self.rng = np.random.default_rng(seed)
        self.capacity, self.k, self.tokens, self.states, self.page = 256, 16, tokens, states, page
        self.pool = avsg.Pool(1, states * self.capacity, segments)
        self.engine = avsg.Engine(
            self.pool, k=self.k, slots=slots, tokens=tokens, states=states, page=page, cores=1, **options
        )
        self.plan = self.engine.new_plan()
        self.batch = avsg.Batch.zeros(states, self.k, tokens, blocks=self.capacity // page if page else 0)
        if page:
            blocks = self.rng.permutation(states * self.capacity // page)
            self.batch.block_table[:] = blocks.reshape(states, -1)
        else:
            assert states == 1
        self.truth = [np.zeros((states, self.capacity, bytes_), np.uint8) for bytes_ in self.pool.info.segment_bytes]
        self.new_rows = [np.zeros((states * tokens, bytes_), np.uint8) for bytes_ in self.pool.info.segment_bytes]
        self.fresh = avsg.Fresh(*self.new_rows)
        self.length = np.zeros(states, np.int64)
        for state in range(states):
            self.join(state)

    def pool_row(self, state, token):
        return self.batch.block_table[state, token // self.page] * self.page + token % self.page if self.page else token

    def join(self, state):
        """Another request takes a state, with a prompt of its own."""
        self.batch.generation[state] += 1
        self.length[state] = self.rng.integers(40, 120)
        for token in range(self.length[state]):
            for data in self.truth:
                data[state, token] = self.rng.integers(0, 256, data.shape[2])
            row = np.concatenate([data[state, token] for data in self.truth])
            self.pool.write_row(0, self.pool_row(state, token), row)

    def step(self):
        """Runs one step and returns how many selected rows were wrong."""
        for state in range(self.states):
            length = self.length[state]
            self.batch.stable_len[state], self.batch.seq_len[state] = length, length + self.tokens
            for token in range(self.tokens):
                row = state * self.tokens + token
                for data, new in zip(self.truth, self.new_rows):
                    new[row] = data[state, length + token] = self.rng.integers(0, 256, data.shape[2])
                self.batch.ids[row] = self.rng.permutation(length + token + 1)[: self.k]
                self.batch.ids[row, self.rng.integers(self.k)] = -1
        self.engine.step(self.batch, self.plan, 0, self.fresh)
        wrong = 0
        for row in range(self.states * self.tokens):
            state, ids, slots = row // self.tokens, self.batch.ids[row], self.plan.slots[row]
            wrong += int(((slots < 0) != (ids < 0)).sum())
            for segment, data in enumerate(self.truth):
                gathered = self.engine.buffer(0, segment)[state, slots[ids >= 0]]
                wrong += int((gathered != data[state, ids[ids >= 0]]).any(axis=1).sum())
        self.engine.append(self.batch, 0, self.fresh)
        for state in range(self.states):
            self.length[state] += self.rng.integers(1, self.tokens + 1)
            if self.length[state] > self.capacity - 2 * self.tokens or self.rng.random() < 0.02:
                self.join(state)
        return wrong


@pytest.mark.parametrize(
    ("segments", "tokens", "states", "page", "options"),
    [
        (48, 1, 1, 0, {}),
        ((32, 8), 3, 1, 0, {"table": avsg.Table.PAPER}),
        ((32, 8), 2, 4, 16, {}),
        ((32, 8), 3, 2, 16, {"slots": 192}),
        ((16, 8, 4, 12), 4, 3, 32, {"lifetime": avsg.Lifetime.LEARNED}),
    ],
)
def test_every_row_is_exact_at_every_step(segments, tokens, states, page, options):
    workload = Workload(7, segments=segments, tokens=tokens, states=states, page=page, **options)
    misses = 0
    for step in range(120):
        assert workload.step() == 0, step
        misses += workload.plan.counters.misses
    assert misses > 500


def test_layers_share_a_plan(deployment):
    batch = deployment.batch
    batch.ids[0] = np.arange(100, 116)
    deployment.engine.plan(batch, deployment.plan)
    for layer in range(2):
        deployment.engine.transfer(deployment.plan, layer)
        assert deployment.wrong_rows(layer=layer) == 0
    request = deployment.plan.request(0)
    assert list(request.miss_id) == list(range(100, 116))
    assert list(request.miss_slot) == list(deployment.plan.slots[0])
    assert deployment.plan.misses[0] == deployment.plan.summary[0].max() == 16 and deployment.plan.valid[0] == 16
    assert deployment.plan.counters == avsg.PlanCounters(1, 1, 16, 0, 16, avsg.RequestStatus(0), 1)


def test_each_indexer_has_a_plan_and_tables_of_its_own():
    made = make_deployment(layers=3, layer_indexer=np.array([0, 1, 0]))
    engine, plans = made.engine, [made.plan, made.engine.new_plan()]
    batches = [avsg.Batch.zeros(1, 16, indexer=indexer) for indexer in range(2)]
    assert engine.info.indexers == 2 and [batch.indexer for batch in batches] == [0, 1]
    for first in (0, 8, 300):
        for indexer, batch in enumerate(batches):
            batch.seq_len[0], batch.ids[0] = 512, np.arange(first, first + 16) + 100 * indexer
            engine.plan(batch, plans[indexer])
        for layer, indexer in enumerate([0, 1, 0]):
            with pytest.raises(avsg.InvalidError, match=f"ids come from indexer {indexer}"):
                engine.transfer(plans[1 - indexer], layer)
            engine.transfer(plans[indexer], layer)
            made.batch, made.plan = batches[indexer], plans[indexer]
            assert made.wrong_rows(layer=layer) == 0
    held = [engine.held(0, 0, 300, 512, indexer=indexer).nonzero()[0] + 300 for indexer in range(2)]
    assert [list(ids) for ids in held] == [list(range(300, 316)), list(range(400, 416))]
    engine.load(plans[0], np.arange(400, 416, dtype=np.int32), state=0, generation=0, seq_len=512, indexer=1)
    made.batch.indexer = 1
    made.batch.ids[0] = np.arange(400, 416)
    for indexer, misses in ((1, 0), (0, 16)):
        made.batch.indexer = indexer
        engine.plan(made.batch, plans[0])
        assert plans[0].counters.misses == misses
    with pytest.raises(avsg.InvalidError, match="indexer is 2"):
        made.batch.indexer = 2
        engine.plan(made.batch, plans[0])


def test_slots_may_count_over_all_states():
    made = make_deployment(states=3, global_slots=1, slot_base=1000, page=64)
    batch = made.batch
    batch.point(block_table=np.arange(8, dtype=np.int32)[None])
    batch.state[0], batch.ids[0] = 2, np.arange(500, 516)
    batch.ids[0, 12:] = -1
    made.engine.step(batch, made.plan)
    slots = made.plan.slots[0]
    assert (slots[12:] == -1).all() and (slots[:12] >= 1000 + 2 * 64).all()
    assert (made.engine.buffer().reshape(-1, 48)[slots[:12] - 1000] == made.rows[0, 500:512]).all()


def test_slots_may_be_in_arrays_of_the_caller():
    pool, random = avsg.Pool(2, 256, (32, 8)), np.random.default_rng(2)
    rows = [[random.integers(0, 256, (256, width), np.uint8) for width in (32, 8)] for _ in range(2)]
    for layer, segments in enumerate(rows):
        pool.write(layer, 0, *segments)
    buffers = [np.zeros((2, 64, width // 2), np.float16) for _ in range(2) for width in (32, 8)]
    engine, batch = avsg.Engine(pool, k=16, slots=64, states=2, buffers=buffers), avsg.Batch.zeros(1, 16)
    plan, batch.state[0], batch.seq_len[0], batch.ids[0] = engine.new_plan(), 1, 256, np.arange(100, 116)
    engine.step(batch, plan, 1)
    for array, written in zip(buffers[2:], rows[1]):
        assert (array[1, plan.slots[0]].view(np.uint8) == written[100:116]).all()
    assert not any(array.any() for array in buffers[:2])
    for wrong, sentence in [
        (buffers[:3], "3 buffers were passed, but the pool has 2 layers of 2 segments"),
        ([*buffers[:3], buffers[3][:1]], r"buffers\[3\] has the shape \[1, 64, 4\] of float16, but needs 1024 "),
    ]:
        with pytest.raises(avsg.InvalidError, match=sentence):
            avsg.Engine(pool, k=16, slots=64, states=2, buffers=wrong)
    with pytest.raises(avsg.InvalidError, match=r"buffers\[0\] is in host memory, but the engine is not"):
        avsg.Engine(pool, k=16, slots=64, states=2, buffers=buffers, device="ascend")


def test_the_misses_of_three_states_have_the_slots_that_the_plan_returns():
    made = make_deployment(states=3, global_slots=1, slot_base=1000)
    batch, plan = avsg.Batch.zeros(3, 16), made.engine.new_plan(3, 3)
    batch.state[:], batch.ids[:], batch.seq_len[:] = [2, 0, 1], np.arange(48).reshape(3, 16), 512
    made.engine.step(batch, plan)
    batch.ids[:, :8] += 100
    made.engine.step(batch, plan)
    of_state, rows = plan.view("miss_slot").numpy().reshape(3, 16), made.engine.buffer()
    for index, state in enumerate(batch.state):
        found = plan.request(index)
        wanted = made.rows[0, found.miss_id]
        assert len(found.miss_id) == 8 and (found.miss_slot == found.slot[0, :8]).all()
        assert (rows.reshape(-1, 48)[found.miss_slot - 1000] == wanted).all()
        assert (rows[state, of_state[index, :8]] == wanted).all()


def test_a_state_is_loaded_forked_invalidated_and_a_plan_is_dropped():
    pool = avsg.Pool(1, 256, 48)
    engine = avsg.Engine(pool, k=16, slots=64, states=2, cores=1)
    plan, batch = engine.new_plan(1, 1), avsg.Batch.zeros(1, 16)
    batch.generation[0], batch.seq_len[0], batch.stable_len[0] = 3, 256, -1

    def misses(state, first):
        batch.state[0], batch.ids[0] = state, np.arange(first, first + 16)
        engine.step(batch, plan)
        return plan.counters.misses

    engine.load(plan, np.arange(16, dtype=np.int32), state=0, generation=3, seq_len=256)
    assert misses(0, 0) == 0
    engine.fork(0, 3, 1, 3)
    assert misses(1, 4) == 4
    # A request that has no plan yet has nothing to copy.
    engine.fork(0, 4, 1, 3)
    assert misses(1, 4) == 16
    engine.invalidate(1, 4, 6)
    assert misses(1, 4) == 2
    batch.ids[0] = np.arange(100, 116)
    engine.plan(batch, plan)
    engine.discard(plan)
    with pytest.raises(avsg.InvalidError, match="plan is empty"):
        engine.discard(plan)
    assert misses(1, 100) == 16
    stats = engine.stats
    assert (stats.plans, stats.transfers, stats.misses, stats.queued) == (7, 6, 16 + 4 + 16 + 2 + 16 + 16, 0)
    assert stats.transferred_bytes == (16 + 4 + 16 + 2 + 16) * 48
    assert stats.plan_ns > 0 and stats.step_ns == 0
    with pytest.raises(avsg.InvalidError, match="state is 2"):
        engine.invalidate(2, 0, 1)


def test_one_call_transfers_and_appends_all_layers():
    pool = avsg.Pool(3, 256, (32, 16))
    truth = np.random.default_rng(5).integers(0, 256, (3, 256, 48), dtype=np.uint8)
    for layer in range(3):
        pool.write(layer, 0, truth[layer, :200, :32], truth[layer, :200, 32:])
    engine = avsg.Engine(pool, k=16, slots=64, cores=2)
    plan, batch = engine.new_plan(), avsg.Batch.zeros(1, 16)
    new = [[np.zeros((1, 32), np.uint8), np.zeros((1, 16), np.uint8)] for _ in range(3)]
    layers = avsg.Layers(range(3), [avsg.Fresh(*rows) for rows in new])
    for length in range(200, 220):
        for layer, rows in enumerate(new):
            rows[0][0], rows[1][0] = truth[layer, length, :32], truth[layer, length, 32:]
        batch.ids[0] = (np.arange(16) * 13 + length) % (length + 1)
        batch.ids[0, 0] = length
        batch.stable_len[0], batch.seq_len[0] = length, length + 1
        engine.plan(batch, plan)
        engine.transfer(plan, layers)
        engine.append(batch, layers)
        for layer in range(3):
            found = np.concatenate([engine.buffer(layer, part)[0, plan.slots[0]] for part in range(2)], axis=1)
            assert (found == truth[layer, batch.ids[0]]).all()
            assert (pool.read_row(layer, length) == truth[layer, length]).all()
    stats = engine.stats
    assert (stats.transfers, stats.appends) == (60, 60)
    batch.stable_len[0] = -1
    engine.plan(batch, plan)
    engine.transfer(plan, avsg.Layers([0, 2]))
    engine.transfer(plan, avsg.Layers([]))
    engine.append(batch, avsg.Layers([]))
    with pytest.raises(avsg.InvalidError, match="layer is 1, but it comes after layer 2 in the list"):
        engine.transfer(plan, avsg.Layers([2, 1]))
    batch.stable_len[0] = length
    with pytest.raises(avsg.InvalidError, match="layer is 3"):
        engine.append(batch, avsg.Layers([3], [avsg.Fresh(*new[0])]))
    with pytest.raises(avsg.NullError, match="fresh is None"):
        engine.append(batch, avsg.Layers([1]))


def test_a_state_tells_what_it_holds_and_is_copied_to_several():
    pool = avsg.Pool(1, 256, 48)
    engine = avsg.Engine(pool, k=16, slots=64, states=3, cores=1)
    plan, batch = engine.new_plan(1, 1), avsg.Batch.zeros(1, 16)
    batch.generation[0], batch.seq_len[0] = 3, 256
    batch.ids[0] = np.arange(40, 72, 2)
    engine.step(batch, plan)
    held = engine.held(0, 3, 30, 130)
    assert held.dtype == bool and held.shape == (100,)
    assert (np.flatnonzero(held) + 30).tolist() == batch.ids[0].tolist()
    assert not engine.held(0, 4, 0, 256).any() and not engine.held(1, 3, 0, 256).any()
    engine.fork(0, 3, [1, 2], [7, 8])
    for state, generation in ((1, 7), (2, 8)):
        assert (engine.held(state, generation, 30, 130) == held).all()
        batch.state[0], batch.generation[0] = state, generation
        engine.step(batch, plan)
        assert plan.counters.misses == 0
    for arguments, part in (
        ((0, 3, [1, 1], [7, 8]), "state is 1, but the list names it twice"),
        ((0, 3, [1, 2], [7]), "2 targets and 1 generations were passed"),
        ((0, 3, 5, 7), "state is 5, but there are 3"),
    ):
        with pytest.raises(avsg.InvalidError, match=part):
            engine.fork(*arguments)
    with pytest.raises(avsg.InvalidError, match=r"ids is 9\.\.9"):
        engine.held(0, 3, 9, 9)
    with pytest.raises(avsg.InvalidError, match="indexer is 1"):
        engine.held(0, 3, 0, 9, indexer=1)


def test_a_new_batch_is_in_the_generation_0_for_load_held_and_fork():
    engine = avsg.Engine(avsg.Pool(1, 256, 48), k=16, slots=64, states=2, cores=1)
    plan, batch = engine.new_plan(), avsg.Batch.zeros(1, 16)
    engine.load(plan, np.arange(8, dtype=np.int32), state=0, generation=0, seq_len=256)
    batch.ids[0], batch.seq_len[0] = np.arange(16), 256
    engine.step(batch, plan)
    assert plan.counters.hits == 8 and engine.held(0, 0, 0, 20).sum() == 16
    engine.fork(0, 0, 1, 0)
    batch.state[0] = 1
    engine.step(batch, plan)
    assert plan.counters.hits == 16


def test_a_request_of_a_plan_is_made_of_views_that_the_plan_keeps(deployment, monkeypatch):
    batch, plan = deployment.batch, deployment.plan
    batch.ids[0] = np.arange(16)
    deployment.engine.step(batch, plan)
    first = plan.request(0)
    monkeypatch.setattr(avsg.Plan, "view", lambda *_: pytest.fail("another view"))
    batch.ids[0] = np.arange(8, 24)
    deployment.engine.step(batch, plan)
    found = plan.request(0)
    assert found.miss_id.tolist() == list(range(16, 24)) == found.miss_row.tolist()
    assert found.miss_id.ctypes.data == first.miss_id.ctypes.data and found.slot.shape == (1, 16)


def test_a_repr_tells_the_sizes_of_an_object(deployment):
    parts = [deployment.engine, deployment.pool, deployment.plan]
    shown = [
        "<avsg.Engine k=16 slots=64 tokens=2 states=1 layers=2 device=cpu>",
        "<avsg.Pool layers=2 rows=512 row_bytes=(48,)>",
        "<avsg.Plan max_tokens=2 max_requests=1 k=16 device=cpu>",
    ]
    assert [repr(part) for part in parts] == shown
    assert repr(deployment.batch) == "<avsg.Batch requests=1 tokens=1 k=16 indexer=0 device=cpu>"
    for part in parts:
        part.close()
    assert [repr(part) for part in parts] == [text.replace(">", " closed>") for text in shown]


def test_a_page_table_names_the_pages_of_a_state():
    pool = avsg.Pool(1, 256, 48)
    engine = avsg.Engine(pool, k=16, slots=64, states=3, cores=1)
    table, lengths = np.zeros((2, 4), np.int32), np.zeros(2, np.int32)
    engine.page_table(np.array([2, -1], np.int32), table, lengths, page=16)
    assert table.tolist() == [[8, 9, 10, 11], [-1, -1, -1, -1]]
    assert lengths.tolist() == [64, 0]
    with pytest.raises(avsg.InvalidError, match=r"table is \[2, 4\] and lengths \[2\], but need \[2, 8\] and 2"):
        engine.page_table(np.array([2, 0], np.int32), table, lengths, page=8)
    lengths.flags.writeable = False
    with pytest.raises(avsg.InvalidError, match="^lengths is read-only, but the library writes to it"):
        engine.page_table(np.array([2, -1], np.int32), table, lengths, page=16)


def test_sixteen_tokens_of_a_request_have_their_own_counts_of_misses():
    made = make_deployment(k=4, slots=64, tokens=16)
    made.batch = avsg.Batch.zeros(1, 4, tokens=16)
    made.batch.seq_len[0] = 512
    # Token g has g % 5 ids that no token before it has.
    new, ids = iter(range(100, 512)), np.zeros((16, 4), np.int32)
    for token in range(16):
        ids[token, : token % 5] = [next(new) for _ in range(token % 5)]
    made.batch.ids[:] = ids
    made.engine.step(made.batch, made.plan, 0)
    assert made.wrong_rows() == 0
    expected = [token % 5 for token in range(16)]
    # The id 0 is missed at each of its places in the first token, which has nothing else.
    expected[0] = 4
    assert list(made.plan.row_misses) == list(made.plan.request(0).row_misses) == expected
    assert made.plan.misses[0] == sum(expected) == made.plan.counters.misses
    halves = [expected[token] + 65536 * expected[token + 8] for token in range(8)]
    assert list(made.plan.summary[0, :8]) == halves
    made.engine.step(made.batch, made.plan, 0)
    assert not made.plan.row_misses.any() and made.wrong_rows() == 0
