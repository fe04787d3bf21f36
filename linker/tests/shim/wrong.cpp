// Kernels that the device would run with wrong results, or that it would stop. Each breaks one
// rule. `in` and `out` hold 4096 words.

KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);

constexpr uint32_t N = 1024;
using Words = LocalTensor<int32_t>;
using Mask = LocalTensor<uint8_t>;

static Words buffer(uint32_t i) { return Words(TPosition::VECCALC, i * N * 4, N); }
static Mask mask() { return Mask(TPosition::VECCALC, 0x18000, 512); }

static GlobalTensor<int32_t> words(GM_ADDR a, uint64_t n = 4096) {
    GlobalTensor<int32_t> g;
    g.SetGlobalBuffer((__gm__ int32_t *)a, n);
    return g;
}

static void all() { PipeBarrier<PIPE_ALL>(); }

static Words loaded(GM_ADDR in, uint32_t i = 0) {
    DataCopy(buffer(i), words(in), N);
    all();
    return buffer(i);
}

static const GatherMaskParams IN_A_ROW{1, 1, 8, 0};

// A name, the rule that the failure names and a part of its message. `rules.rs` reads the two from this file, so a
// kernel without them must not fail.
// BARE is a kernel without anything that the shim asks of all kernels.
#define BARE(NAME, ...) extern "C" __global__ __aicore__ void NAME([[maybe_unused]] GM_ADDR in, [[maybe_unused]] GM_ADDR out)
#define WRONG(NAME, ...)                                                                  \
    static void NAME##_body([[maybe_unused]] GM_ADDR in, [[maybe_unused]] GM_ADDR out);   \
    BARE(NAME) {                                                                          \
        InitSocState();                                                                   \
        NAME##_body(in, out);                                                             \
        PipeBarrier<PIPE_ALL>();                                                          \
    }                                                                                     \
    static void NAME##_body([[maybe_unused]] GM_ADDR in, [[maybe_unused]] GM_ADDR out)

// int32 can be compared for equality only.
WRONG(compare_less, "dtype", "EQ only") { Compares(mask(), loaded(in), 0, CMPMODE::LT, N); }
WRONG(compare_unequal, "dtype", "EQ only") { Compare(mask(), loaded(in), buffer(0), CMPMODE::NE, N); }
// Select overwrites the unified buffer above 184 KB.
WRONG(select_scratch, "undefined", "stores byte 0") {
    LocalTensor<float> high(TPosition::VECCALC, 184 * 1024, 64), low(TPosition::VECCALC, 0, 128), to = low[64];
    Duplicate(high, 1.0f, 64);
    Duplicate(low, 2.0f, 64);
    Duplicate(mask().ReinterpretCast<uint16_t>(), (uint16_t)0x5555, 16);
    all();
    Select(to, mask(), low, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);
    all();
    DataCopy(words(out), high.ReinterpretCast<int32_t>(), 64);
}
WRONG(select_operand_in_scratch, "overlap", "184 KB") {
    LocalTensor<float> high(TPosition::VECCALC, 184 * 1024, 64), low(TPosition::VECCALC, 0, 64);
    Select(low, mask(), high, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);
}
// 100 elements are one whole repeat of 64 and a tail that Compare leaves undefined.
WRONG(compare_tail, "undefined", "pattern bit 64") {
    Words x = loaded(in);
    Compares(mask(), x, 0, CMPMODE::EQ, 100);
    all();
    uint64_t earlier = 0;
    GatherMask(buffer(1), x, mask().ReinterpretCast<uint32_t>(), true, 100, IN_A_ROW, earlier);
}
// Gather takes at most 16383 elements.
WRONG(gather_count, "count", "16384 is above 16383") {
    LocalTensor<uint32_t> off(TPosition::VECCALC, 0, 16384);
    LocalTensor<int32_t> to(TPosition::VECCALC, 65536, 16384), from(TPosition::VECCALC, 131072, 8);
    Gather(to, from, off, 0, 16384);
}
// CANN's check of the parameters demands a block of the source for each repeat but the last, and 64 elements for that one.
WRONG(gather_source, "bounds", "has 1024 bytes, and CANN's check of 4096 elements demands 1120") {
    LocalTensor<uint32_t> off(TPosition::VECCALC, 0, 4096);
    LocalTensor<half> to(TPosition::VECCALC, 16384, 4096), from(TPosition::VECCALC, 24576, 512);
    Gather(to, from, off, 0, 4096);
}
// SyncAll needs a kernel type that starts the scheduler.
WRONG(aiv_only, "sync", "AIV_ONLY does not start the scheduler") { SyncAll<true>(); }

// An earlier kernel may have left a core in any state, and nothing drains its stores at the end.
BARE(no_init, "state", "runs before InitSocState") {
    DataCopy(words(out), loaded(in), N);
    all();
}
BARE(late_init, "state", "LocalTensor::SetValue at ") {
    buffer(0).SetValue(0, 1);
    InitSocState();
    all();
}
BARE(no_init_repeats, "state", "runs before InitSocState") {
    for (uint32_t i = 8; i < 16; ++i) buffer(0).SetValue(i, 3);
    all();
    Adds(buffer(0), buffer(0), 1, (uint64_t)8, 1, UnaryRepeatParams{1, 1, 8, 8});
    all();
    DataCopy(words(out), buffer(0), 16);
    all();
}
BARE(not_drained, "drain", "is not preceded by PipeBarrier<PIPE_ALL>") {
    InitSocState();
    DataCopy(words(out), loaded(in), N);
}
BARE(never_drained, "drain", "is not preceded by PipeBarrier<PIPE_ALL>") { InitSocState(); }
BARE(drained_too_early, "drain", "is not preceded by PipeBarrier<PIPE_ALL>") {
    InitSocState();
    Words x = loaded(in);
    all();
    DataCopy(words(out), x, N);
}
// int32 arithmetic must not overflow.
WRONG(multiply_overflow, "overflow", "lane") { Muls(buffer(1), loaded(in), 0x10000000, N); }
WRONG(add_overflow, "overflow", "lane") {
    Words x = loaded(in);
    Duplicate(buffer(1), 0x7fffffff, N);
    all();
    Add(buffer(2), buffer(1), x, N);
}

// These kernels break a rule on operands.
WRONG(misaligned, "alignment", "no multiple of 32") { Adds(buffer(1), loaded(in)[3], 1, 64); }
WRONG(misaligned_dma, "alignment", "no multiple of 32") { DataCopy(buffer(0)[1], words(in), 64); }
WRONG(past_tensor, "bounds", "src") { Adds(buffer(1), loaded(in)[512], 1, 520); }
WRONG(past_tensor_dst, "bounds", "dst") { Duplicate(buffer(0)[8], 1, N); }
WRONG(odd_tensor, "alignment", "has 400 bytes, which is no multiple of 32") { Words(TPosition::VECCALC, 0, 100); }
WRONG(past_ub, "bounds", "196608") { Words(TPosition::VECCALC, 192 * 1024 - 32, 9); }
WRONG(slice_past_end, "bounds", "past the tensor's 1024 elements") { buffer(0)[N + 1]; }
WRONG(overlap, "overlap", "partly overlaps src") { Adds(loaded(in)[8], buffer(0), 1, 64); }
WRONG(overlap_repeats, "overlap", "partly overlaps src") {
    Words x = loaded(in);
    // Repeat 0 writes the elements that repeat 1 reads.
    Add(x[64], x, buffer(0), 64, 2, BinaryRepeatParams{1, 1, 1, 8, 8, 8});
}
WRONG(cast_overlap, "overlap", "src") {
    loaded(in);
    Cast(buffer(0).ReinterpretCast<float>(), buffer(0).ReinterpretCast<half>(), RoundMode::CAST_NONE, 64);
}
WRONG(gather_alias, "overlap", "src") {
    Words x = loaded(in);
    Gather(x, x, buffer(1).ReinterpretCast<uint32_t>(), 0, 64);
}
WRONG(mask_too_wide, "count", "not in 1..64") { Adds(buffer(1), loaded(in), 1, (uint64_t)65, 1, UnaryRepeatParams{1, 1, 8, 8}); }
WRONG(no_lane, "count", "not in 1..64") { Adds(buffer(1), loaded(in), 1, (uint64_t)0, 1, UnaryRepeatParams{1, 1, 8, 8}); }
WRONG(negative_count, "count", "-1") { Adds(buffer(1), loaded(in), 1, -1); }
WRONG(shift_too_far, "count", "33") { ShiftRight(buffer(1), loaded(in), 33, N); }

// These kernels use undefined data.
WRONG(uninitialised_scalar, "undefined", "element 7") { buffer(0).GetValue(7); }
WRONG(uninitialised_store, "undefined", "stores byte 0 (UB 0x0)") { DataCopy(words(out), buffer(0), 64); }
WRONG(spreads, "undefined", "element 63") {
    Adds(buffer(1), buffer(0), 1, 64);
    PipeBarrier<PIPE_V>();
    Muls(buffer(2), buffer(1), 0, 64);
    all();
    buffer(2).GetValue(63);
}
WRONG(past_rsvd, "undefined", "element 512") {
    uint64_t earlier = 0;
    GatherMask(buffer(1), loaded(in), (uint8_t)1, true, N, IN_A_ROW, earlier);
    all();
    buffer(1).GetValue(uint32_t(GetGatherMaskRemainCount()));
}
WRONG(dma_tail, "undefined", "element 5") {
    DataCopyPad(buffer(0), words(in), DataCopyExtParams{1, 20, 0, 0, 0}, DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
    all();
    buffer(0).GetValue(5);
}
WRONG(gather_undefined_offset, "undefined", "offset 0") {
    loaded(in);
    Gather(buffer(2), buffer(0), buffer(1).ReinterpretCast<uint32_t>(), 0, 64);
}
WRONG(gather_outside, "bounds", "4096") {
    loaded(in);
    Duplicate(buffer(1), 4096, 64);
    all();
    Gather(buffer(2), buffer(0), buffer(1).ReinterpretCast<uint32_t>(), 0, 64);
}
WRONG(gather_negative, "bounds", "(-4)") {
    loaded(in);
    Duplicate(buffer(1), -4, 64);
    all();
    Gather(buffer(2), buffer(0), buffer(1).ReinterpretCast<uint32_t>(), 0, 64);
}
WRONG(gather_unaligned, "alignment", "no multiple of 4") {
    loaded(in);
    Duplicate(buffer(1), 6, 64);
    all();
    Gather(buffer(2), buffer(0), buffer(1).ReinterpretCast<uint32_t>(), 0, 64);
}
WRONG(no_room, "bounds", "space for 8") {
    uint64_t earlier = 0;
    GatherMask(Words(TPosition::VECCALC, N * 8, 8), loaded(in), (uint8_t)7, true, N, IN_A_ROW, earlier);
}
WRONG(in_place_compaction, "overlap", "src0") {
    uint64_t earlier = 0;
    GatherMask(loaded(in), buffer(0), (uint8_t)1, true, N, IN_A_ROW, earlier);
}

// These kernels break a rule on conversions.
WRONG(round_mode, "dtype", "rounding mode 0") { Cast(buffer(1), loaded(in).ReinterpretCast<float>(), RoundMode::CAST_NONE, N); }
WRONG(narrowing, "overflow", "70000") {
    Duplicate(buffer(0), 70000, 64);
    all();
    Cast(buffer(1).ReinterpretCast<int16_t>(), buffer(0), RoundMode::CAST_NONE, 64);
}
WRONG(lifetime_too_long, "overflow", "128") {
    Duplicate(buffer(0).ReinterpretCast<half>(), half(128), 64);
    all();
    Cast(buffer(1).ReinterpretCast<int8_t>(), buffer(0).ReinterpretCast<half>(), RoundMode::CAST_RINT, 64);
}

// These kernels break a rule on DMA.
WRONG(two_runs, "count", "one run of bytes") {
    DataCopyPad(buffer(0), words(in), DataCopyExtParams{2, 4, 0, 0, 0}, DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
}
WRONG(padded, "count", "padding is not modelled") {
    DataCopyPad(buffer(0), words(in), DataCopyExtParams{1, 20, 0, 0, 0}, DataCopyPadExtParams<int32_t>{true, 1, 1, 0});
}
WRONG(long_run, "count", "2097151") {
    DataCopyPad(words(out), buffer(0), DataCopyExtParams{1, 1 << 21, 0, 0, 0});
}
WRONG(mask_by_repeats, "count", "counter mode") {
    uint64_t earlier = 0;
    GatherMask(buffer(1), loaded(in), (uint8_t)1, false, 0, IN_A_ROW, earlier);
}
WRONG(odd_length, "count", "4 bytes") {
    DataCopyPad(buffer(0), words(in), DataCopyExtParams{1, 6, 0, 0, 0}, DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
}
WRONG(past_region, "gm-range", "DDR address of the MTE instruction is out of range") { DataCopy(buffer(0), words(in, 0)[4096 - 32], 64); }
WRONG(past_global, "bounds", "128 left") { DataCopy(buffer(0), words(in, 32), 64); }
WRONG(read_only, "gm-range", "read-only") {
    loaded(in);
    DataCopy(words(in), buffer(0), 64);
}
WRONG(unregistered) { DataCopy(buffer(0), words(in), 8); }

// These kernels break a rule on events.
WRONG(reserved_event, "sync", "6 and 7 are reserved") { SetFlag<HardEvent::MTE2_V>(EVENT_ID6); }
WRONG(wait_without_set, "sync", "nothing has set") { WaitFlag<HardEvent::MTE2_V>(EVENT_ID0); }
WRONG(wait_of_another_pair, "sync", "V_MTE2") {
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
}
WRONG(set_twice, "sync", "second time") {
    SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
}
WRONG(unpaired, "sync", "still set when the kernel ends") { SetFlag<HardEvent::MTE2_V>(EVENT_ID0); }
WRONG(right) { DataCopy(words(out), loaded(in), N); }
