// Probes of a GPU: rows gathered from host memory by loads and by bulk copies, a table that is brought to shared
// memory by both, and a kernel that does nothing.
// From AVSG. Apache-2.0.

#include "avsg_scan.cuh"

namespace avsg {

struct ProbeSizes {
    int rows, rowBytes;     // rows to gather; bytes of a row, a multiple of 16
    int warps, ringBytes;   // warps that start bulk copies, and bytes of the rows under way in a block
    int tableBytes, ids;    // bytes of a table, a multiple of 16, and the number of its words that are added up
};

// Row i of `to` is row `row[i]` of `host`. A warp loads AHEAD rows of at most 3 pieces for a thread before it stores
// the first one.
template <int AHEAD>
__device__ __forceinline__ void GatherByLoads(
    const unsigned char *host, unsigned char *to, const int *row, const ProbeSizes &sizes)
{
    constexpr int PIECES = 3;
    const int pieces = sizes.rowBytes / 16;
    const int warp = static_cast<int>(blockIdx.x) * WARPS + WarpOfBlock();
    const int warps = static_cast<int>(gridDim.x) * WARPS;
    for (int first = warp * AHEAD; first < sizes.rows; first += warps * AHEAD) {
        int4 piece[AHEAD][PIECES];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const long long at = row[min(first + i, sizes.rows - 1)];
            const int4 *const from = reinterpret_cast<const int4 *>(host + at * sizes.rowBytes);
#pragma unroll
            for (int j = 0; j < PIECES; j++) {
                if (LaneOfWarp() + j * WARP < pieces) {
                    piece[i][j] = __ldg(from + LaneOfWarp() + j * WARP);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int4 *const at = reinterpret_cast<int4 *>(to + static_cast<long long>(first + i) * sizes.rowBytes);
#pragma unroll
            for (int j = 0; j < PIECES; j++) {
                if (first + i < sizes.rows && LaneOfWarp() + j * WARP < pieces) {
                    at[LaneOfWarp() + j * WARP] = piece[i][j];
                }
            }
        }
    }
}

// Adds words of a table in shared memory, and writes the sum of each warp.
__device__ __forceinline__ void AddWords(unsigned *sums, const int *id, const ProbeSizes &sizes)
{
    unsigned sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < sizes.ids; i += THREADS) {
        sum += Shared<unsigned>(0)[id[i]];
    }
    sum = SumOfWarp(sum);
    if (LaneOfWarp() == 0) {
        sums[static_cast<int>(blockIdx.x) * WARPS + WarpOfBlock()] = sum;
    }
}

} // namespace avsg

extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_probe_loads(
    const unsigned char *host, unsigned char *to, const int *row, const __grid_constant__ avsg::ProbeSizes sizes)
{
    avsg::GatherByLoads<1>(host, to, row, sizes);
}

extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_probe_loads_ahead(
    const unsigned char *host, unsigned char *to, const int *row, const __grid_constant__ avsg::ProbeSizes sizes)
{
    avsg::GatherByLoads<2>(host, to, row, sizes);
}

// Each block has its table, which it copies to shared memory by loads, as avsg_step does.
extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_probe_table(
    const unsigned char *tables, unsigned *sums, const int *id, const __grid_constant__ avsg::ProbeSizes sizes)
{
    const long long at = static_cast<long long>(blockIdx.x) * sizes.tableBytes;
    avsg::CopyWords<4>(avsg::Shared<int>(0), reinterpret_cast<const int *>(tables + at), sizes.tableBytes / 4);
    __syncthreads();
    avsg::AddWords(sums, id, sizes);
}

extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_probe_nothing(
    const unsigned char *, const __grid_constant__ avsg::ProbeSizes)
{
}

#if __CUDA_ARCH__ >= 900

// Threads of some warps copy in bulk, as those of avsg_step do: each has a place in shared memory, where a row arrives
// and from where it leaves.
extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_probe_bulk(
    const unsigned char *host, unsigned char *to, const int *row, const __grid_constant__ avsg::ProbeSizes sizes)
{
    using namespace avsg;
    // Behind the barriers of all places are the rows.
    const int places = min(sizes.ringBytes / (sizes.rowBytes + 16), sizes.warps * WARP);
    const int own = LaneOfWarp() * sizes.warps + WarpOfBlock();
    if (WarpOfBlock() >= sizes.warps || own >= places) {
        return;
    }
    CopyBarrier *const barrier = Shared<CopyBarrier>(own * 8);
    unsigned char *const place = Shared<unsigned char>(places * 16 + own * sizes.rowBytes);
    InitCopyBarrier(barrier);
    FenceBulkCopies();
    bool arrives = false;
    int phase = 0;
    for (int i = static_cast<int>(blockIdx.x) * places + own; i < sizes.rows;) {
        if (!arrives) {
            // The last row has left the place.
            WaitForReads();
            ExpectBytes(barrier, sizes.rowBytes);
            StartLoad(place, host + static_cast<long long>(row[i]) * sizes.rowBytes, sizes.rowBytes, barrier);
            arrives = true;
        }
        if (HasBytes(barrier, phase)) {
            StartStore(to + static_cast<long long>(i) * sizes.rowBytes, place, sizes.rowBytes);
            EndGroup();
            arrives = false;
            phase ^= 1;
            i += static_cast<int>(gridDim.x) * places;
        }
    }
    WaitForReads();
}

// As avsg_probe_table, by bulk copies of one thread.
extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_probe_table_bulk(
    const unsigned char *tables, unsigned *sums, const int *id, const __grid_constant__ avsg::ProbeSizes sizes)
{
    using namespace avsg;
    constexpr int PART_BYTES = 16 * 1024;
    CopyBarrier *const barrier = Shared<CopyBarrier>(sizes.tableBytes);
    if (threadIdx.x == 0) {
        InitCopyBarrier(barrier);
        FenceBulkCopies();
        ExpectBytes(barrier, sizes.tableBytes);
        const unsigned char *const from = tables + static_cast<long long>(blockIdx.x) * sizes.tableBytes;
        for (int at = 0; at < sizes.tableBytes; at += PART_BYTES) {
            StartLoad(Shared<unsigned char>(at), from + at, min(PART_BYTES, sizes.tableBytes - at), barrier);
        }
        while (!HasBytes(barrier, 0)) {
        }
    }
    __syncthreads();
    AddWords(sums, id, sizes);
}

#endif
