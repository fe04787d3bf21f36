// One instruction per kernel, on 2048 words: a is in x, b in y, and the result in z, which starts
// as -9.

// At file scope the type applies to every kernel of the file.
KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);

constexpr uint32_t N = 2048;
template <class T> using Vec = LocalTensor<T>;

template <class T> static Vec<T> x(uint32_t at = 0) { return Vec<T>(TPosition::VECIN, at * 4, (N - at) * 4 / sizeof(T)); }
template <class T> static Vec<T> y() { return Vec<T>(TPosition::VECIN, 8192, N * 4 / sizeof(T)); }
template <class T> static Vec<T> z() { return Vec<T>(TPosition::VECOUT, 16384, N * 4 / sizeof(T)); }
template <class T> static Vec<T> w() { return Vec<T>(TPosition::VECCALC, 24576, N * 4 / sizeof(T)); }
static Vec<int32_t> xi() { return x<int32_t>(); }
static Vec<int32_t> yi() { return y<int32_t>(); }
static Vec<int32_t> zi() { return z<int32_t>(); }
static Vec<float> xf() { return x<float>(); }
static Vec<float> yf() { return y<float>(); }
static Vec<float> zf() { return z<float>(); }
static Vec<half> xh() { return x<half>(); }
static Vec<half> yh() { return y<half>(); }
static Vec<half> zh() { return z<half>(); }
static Vec<uint8_t> mask() { return Vec<uint8_t>(TPosition::VECCALC, 32768, N / 4); }
static void all() { PipeBarrier<PIPE_ALL>(); }

static GlobalTensor<int32_t> words(GM_ADDR a) {
    GlobalTensor<int32_t> g;
    g.SetGlobalBuffer((__gm__ int32_t *)a, N);
    return g;
}

#define OP(NAME)                                                                             \
    static void NAME##_body([[maybe_unused]] GM_ADDR a, [[maybe_unused]] GM_ADDR out);       \
    extern "C" __global__ __aicore__ void NAME(GM_ADDR a, GM_ADDR b, GM_ADDR out) {          \
        InitSocState();                                                                      \
        DataCopy(xi(), words(a), N);                                                         \
        DataCopy(yi(), words(b), N);                                                         \
        Duplicate(zi(), -9, N);                                                              \
        all();                                                                               \
        NAME##_body(a, out);                                                                 \
        all();                                                                               \
        DataCopy(words(out), zi(), N);                                                       \
        all();                                                                               \
    }                                                                                        \
    static void NAME##_body([[maybe_unused]] GM_ADDR a, [[maybe_unused]] GM_ADDR out)

OP(add) { Add(zi(), xi(), yi(), N); }
OP(sub) { Sub(zi(), xi(), yi(), N); }
OP(mul) { Mul(zi(), xi(), yi(), N); }
OP(max) { Max(zi(), xi(), yi(), N); }
OP(adds) { Adds(zi(), xi(), -17, N); }
OP(muls) { Muls(zi(), xi(), -3, N); }
OP(maxs) { Maxs(zi(), xi(), 5, N); }
OP(in_place) {
    Add(xi(), xi(), yi(), N);
    all();
    Adds(zi(), xi(), 0, N);
}
OP(synchronised) {
    Adds(zi(), xi(), 1, N);
    SyncAll<true>();
}
OP(odd_count) { Add(zi(), xi(), yi(), 1001); }
OP(nothing) { Add(zi(), xi(), yi(), 0); }
// Only lanes 0, 1 and 7 of each repeat are active. The blocks of x and z are two apart.
OP(strided) {
    uint64_t lanes[2] = {0x83, 0};
    Add(zi(), xi(), yi(), lanes, 16, BinaryRepeatParams{2, 2, 1, 16, 16, 8});
}
OP(contiguous_mask) { Adds(zi(), xi(), 1, (uint64_t)20, 32, UnaryRepeatParams{1, 1, 8, 8}); }
OP(add_f) { Add(zf(), xf(), yf(), N); }
OP(mul_f) { Mul(zf(), xf(), yf(), N); }
OP(max_f) { Maxs(zf(), xf(), 0.5f, N); }
OP(add_h) { Add(zh(), xh(), yh(), 2 * N); }
OP(mul_h) { Mul(zh(), xh(), yh(), 2 * N); }
OP(adds_h) { Adds(zh(), xh(), half(-1), 2 * N); }

OP(bit_and) { And(z<uint16_t>(), x<uint16_t>(), y<uint16_t>(), 2 * N); }
OP(bit_or) { Or(z<uint16_t>(), x<uint16_t>(), y<uint16_t>(), 2 * N); }
OP(bit_not) { Not(z<uint16_t>(), x<uint16_t>(), 2 * N); }
// One block of y is combined with every block of x.
OP(bit_broadcast) {
    And(z<uint16_t>(), x<uint16_t>(), y<uint16_t>(), (uint64_t)128, 32, BinaryRepeatParams{1, 1, 0, 8, 8, 0});
}
OP(shift_left) { ShiftLeft(z<uint32_t>(), x<uint32_t>(), (uint32_t)5, N); }
OP(shift_logical) { ShiftRight(z<uint32_t>(), x<uint32_t>(), (uint32_t)7, N); }
OP(shift_arithmetic) { ShiftRight(zi(), xi(), (int32_t)31, N); }

OP(duplicate) { Duplicate(zi(), 77, N); }

OP(int_to_float) { Cast(zf(), xi(), RoundMode::CAST_NONE, N); }
OP(float_rint) { Cast(zi(), xf(), RoundMode::CAST_RINT, N); }
OP(float_to_half) { Cast(zh(), xf(), RoundMode::CAST_NONE, N); }
OP(half_to_float) { Cast(zf(), xh(), RoundMode::CAST_NONE, N); }
OP(byte_to_half_to_float) {
    Cast(w<half>(), x<int8_t>(), RoundMode::CAST_NONE, N);
    all();
    Cast(zf(), w<half>(), RoundMode::CAST_NONE, N);
}
OP(bytes_round_trip) {
    Cast(w<half>(), x<int8_t>(), RoundMode::CAST_NONE, 2 * N);
    all();
    Cast(z<int8_t>(), w<half>(), RoundMode::CAST_RINT, 2 * N);
}
OP(half_to_int) { Cast(zi(), xh(), RoundMode::CAST_RINT, N); }
OP(int_to_short) { Cast(z<int16_t>(), xi(), RoundMode::CAST_NONE, N); }

static void bits_out() {
    all();
    for (uint32_t i = 0; i < N / 32; ++i) zi().SetValue(i, mask().ReinterpretCast<int32_t>().GetValue(i));
}
OP(equal) {
    Compare(mask(), xi(), yi(), CMPMODE::EQ, N);
    bits_out();
}
OP(equal_scalar) {
    Compares(mask(), xi(), -3, CMPMODE::EQ, N);
    bits_out();
}
OP(less_f) {
    Compare(mask(), xf(), yf(), CMPMODE::LT, N);
    bits_out();
}
OP(less_equal_h) {
    Compares(mask(), xh(), half(0), CMPMODE::LE, N);
    bits_out();
}
OP(greater_f) {
    Compares(mask(), xf(), 0.25f, CMPMODE::GT, N);
    bits_out();
}
OP(at_least_f) {
    Compares(mask(), xf(), 0.25f, CMPMODE::GE, N);
    bits_out();
}
OP(unequal_f) {
    Compares(mask(), xf(), 0.25f, CMPMODE::NE, N);
    bits_out();
}

// The mask is in the first words of b.
OP(select_tensor) { Select(zf(), y<uint8_t>(), xf(), yf(), SELMODE::VSEL_TENSOR_TENSOR_MODE, N); }
OP(select_scalar) { Select(zf(), y<uint8_t>(), xf(), 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, N); }

// y holds byte offsets, which are multiples of 4 below 4096.
OP(gather) { Gather(zi(), xi(), y<uint32_t>(), 0, N); }
OP(gather_base) { Gather(zi(), xi(), y<uint32_t>(), 4096, N); }

static void counted() {
    all();
    const int64_t kept = GetGatherMaskRemainCount();
    // The words past the count are undefined and become -9, and the last word receives the count.
    for (uint32_t i = uint32_t(kept); i < N; ++i) zi().SetValue(i, -9);
    zi().SetValue(N - 1, int32_t(kept));
}
OP(compact) {
    uint64_t earlier = 0;
    GatherMask(zi(), xi(), y<uint32_t>(), true, 1900, GatherMaskParams{1, 1, 8, 0}, earlier);
    counted();
}
OP(even) {
    uint64_t earlier = 0;
    GatherMask(zi(), xi(), (uint8_t)1, true, 1000, GatherMaskParams{1, 1, 8, 0}, earlier);
    counted();
}

// DMA of a part of a block. The rest of the block in UB is undefined, and that of global memory stays.
OP(part_in) {
    DataCopyPad(zi(), words(a), DataCopyExtParams{1, 20, 0, 0, 0}, DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
    all();
    for (uint32_t i = 5; i < 8; ++i) zi().SetValue(i, -9);
}
OP(part_out) {
    DataCopyPad(words(out), xi(), DataCopyExtParams{1, 20, 0, 0, 0});
    all();
    DataCopy(zi(), words(out), N);
}
