// Probes of a GPU: rows gathered from host memory by loads and by bulk copies, a table that is brought to shared
// memory by both, and a kernel that does nothing.
// From AVSG. Apache-2.0.

#include "avsg_scan.cuh"

namespace avsg {

struct ProbeSizes {
    int rows, rowBytes;     // rows to gather; bytes of a row, a multiple of 16
    int warps, ringBytes;   // warps of which one thread starts bulk copies, and bytes of the rings of a block
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

// Each block has its table, which it copies to shared memory by loads.
extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_probe_table(
    const unsigned char *tables, unsigned *sums, const int *id, const __grid_constant__ avsg::ProbeSizes sizes)
{
    const long long at = static_cast<long long>(blockIdx.x) * sizes.tableBytes;
    avsg::CopyWords(avsg::Shared<int>(0), reinterpret_cast<const int *>(tables + at), sizes.tableBytes / 4);
    __syncthreads();
    avsg::AddWords(sums, id, sizes);
}

extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_probe_nothing(
    const unsigned char *, const __grid_constant__ avsg::ProbeSizes)
{
}

#if __CUDA_ARCH__ >= 900

// One thread of each of some warps starts bulk copies to its ring: while rows arrive in some entries, others leave.
extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_probe_bulk(
    const unsigned char *host, unsigned char *to, const int *row, const __grid_constant__ avsg::ProbeSizes sizes)
{
    using namespace avsg;
    if (LaneOfWarp() != 0 || WarpOfBlock() >= sizes.warps) {
        return;
    }
    // A ring begins with a barrier for each of its entries, which are rows.
    const int ringBytes = sizes.ringBytes / sizes.warps / 16 * 16;
    const int depth = ringBytes / (sizes.rowBytes + 16);
    unsigned char *const ring = Shared<unsigned char>(WarpOfBlock() * ringBytes);
    CopyBarrier *const barriers = reinterpret_cast<CopyBarrier *>(ring);
    unsigned char *const entries = ring + depth * 16;
    for (int i = 0; i < depth; i++) {
        InitCopyBarrier(&barriers[i]);
    }
    FenceBulkCopies();
    const int first = static_cast<int>(blockIdx.x) * sizes.warps + WarpOfBlock();
    const int stride = static_cast<int>(gridDim.x) * sizes.warps;
    int started = 0;
    for (int done = 0; first + done * stride < sizes.rows; done++) {
        // The entry before the last one may still be read by its store.
        for (; first + started * stride < sizes.rows && started < done + depth - 1; started++) {
            const int entry = started % depth;
            const long long from = row[first + started * stride];
            if (started >= depth) {
                WaitForReadsButOne();
            }
            ExpectBytes(&barriers[entry], sizes.rowBytes);
            StartLoad(entries + entry * sizes.rowBytes, host + from * sizes.rowBytes, sizes.rowBytes, &barriers[entry]);
        }
        const int entry = done % depth;
        WaitForBytes(&barriers[entry], done / depth % 2);
        const long long at = first + done * stride;
        StartStore(to + at * sizes.rowBytes, entries + entry * sizes.rowBytes, sizes.rowBytes);
        EndGroup();
    }
    WaitForStores();
    for (int i = 0; i < depth; i++) {
        DropCopyBarrier(&barriers[i]);
    }
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
        WaitForBytes(barrier, 0);
    }
    __syncthreads();
    AddWords(sums, id, sizes);
}

#endif
