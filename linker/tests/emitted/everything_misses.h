__aicore__ inline void Setup(const Gm &gm)
{
    // Marks the core, so that a request on a core without Setup is noticed.
    const LocalTensor<int32_t> mark(TPosition::VECCALC, 0, 8);
    Duplicate(mark, 4711, 8);
}

// Every id misses and takes the slot with the id's number. The fields of the request are written to
// missPos.
template <typename Cores> __aicore__ inline void StageOne(const Gm &gm, const Request &q, Cores)
{
    const LocalTensor<int32_t> mark(TPosition::VECCALC, 0, 8);
    const LocalTensor<int32_t> words(TPosition::VECCALC, 32, 24);
    const LocalTensor<int32_t> ids(TPosition::VECCALC, 128, 64);
    const int32_t fields[] = {q.tokens, q.k, q.generation, q.stable, q.limit, q.rows, q.idsAt, q.idsStride,
                              q.blocksAt, q.blocksLen, q.slotAt, q.slotStride, q.validAt, q.missAt, q.summaryAt,
                              static_cast<int32_t>(q.tableAt), q.deferred, mark.GetValue(0)};
    for (int32_t i = 0; i < 18; i++) {
        words.SetValue(i, fields[i]);
    }
    SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID2);
    CopyOut(gm.summary[q.summaryAt], words, 16);
    if (q.tokens > 0) {
        CopyOut(gm.missPos[q.missAt], words, 18);
    }
    for (int32_t g = 0; g < q.tokens; g++) {
        SetWaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID2);
        CopyIn(ids, gm.ids[q.idsAt + g * q.idsStride], q.k);
        SetWaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID2);
        CopyOut(gm.slot[q.slotAt + g * q.slotStride], ids, q.k);
        CopyOut(gm.missSlot[q.missAt + g * q.k], ids, q.k);
        CopyOut(gm.missRow[q.missAt + g * q.k], ids, q.k);
        CopyOut(gm.missId[q.missAt + g * q.k], ids, q.k);
    }
    SetWaitFlag<HardEvent::MTE3_S>(EVENT_ID2);
    words.SetValue(0, q.k);
    words.SetValue(8, q.tokens * q.k);
    SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID2);
    for (int32_t g = 0; g < q.tokens; g++) {
        CopyOut(gm.valid[q.validAt + g], words, 1);
    }
    PipeBarrier<PIPE_MTE3>();
    CopyOut(gm.summary[q.summaryAt], words, 16);
}
