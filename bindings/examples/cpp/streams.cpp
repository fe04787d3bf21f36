// A decode loop in a stream of the caller. Arrays are in device memory, the host waits for nothing but
// the end of a step, and after some steps one captured step is replayed for all that follow. The ids of a
// step reach their array late, by a copy that is queued before the plan, as an indexer kernel would write
// them. Every row that attention would read is compared.
//
//   streams RUNTIME KERNELS      RUNTIME: libascendcl.so, or its simulator; KERNELS: what `avsg emit` wrote
//
// `bindings/examples/run cpp` builds the simulator and the kernels, and runs this program with them.
#include <avsg.hpp>

#include "ascend_runtime.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int kLayers = 2, kTokens = 2, kK = 8, kSlots = 128, kStates = 2, kPage = 16, kBlocks = 32;
constexpr int kQueuedSteps = 20, kReplayedSteps = 40, kPrompt = 200, kRows = kStates * kTokens;
constexpr std::size_t kSegments[2] = {64, 32}, kRowBytes = kSegments[0] + kSegments[1];

// An array in device memory, which is allocated once.
template <class T>
class DeviceArray {
   public:
    DeviceArray(const Runtime &runtime, std::size_t size) : runtime_(runtime), size_(size) {
        const std::int32_t huge_pages_first = 0;
        runtime.call<void **, std::size_t, std::int32_t>("aclrtMalloc", &data_, bytes(), huge_pages_first);
    }
    DeviceArray(const DeviceArray &) = delete;
    DeviceArray &operator=(const DeviceArray &) = delete;
    ~DeviceArray() { runtime_.call<void *>("aclrtFree", data_); }

    void write(const std::vector<T> &values) { runtime_.copy(data_, values.data(), bytes(), kHostToDevice); }
    // Queues a copy of another array of the same length.
    void copy_in(const DeviceArray &from, Runtime::Stream stream) {
        runtime_.call<void *, std::size_t, const void *, std::size_t, std::int32_t, Runtime::Stream>(
            "aclrtMemcpyAsync", data_, bytes(), from.data_, bytes(), kDeviceToDevice, stream);
    }
    T *data() const { return static_cast<T *>(data_); }
    std::size_t size() const { return size_; }

   private:
    std::size_t bytes() const { return size_ * sizeof(T); }
    const Runtime &runtime_;
    std::size_t size_;
    void *data_ = nullptr;
};
using Ints = DeviceArray<std::int32_t>;
using Bytes = DeviceArray<unsigned char>;

// Returns the row of a token in one layer.
std::vector<unsigned char> row_of(int request, int layer, std::int32_t id) {
    std::uint32_t x = static_cast<std::uint32_t>(request * 31 + layer) * 40503u +
                      static_cast<std::uint32_t>(id) * 2654435761u;
    std::vector<unsigned char> row(kRowBytes);
    for (auto &byte : row) {
        x = x * 1664525u + 1013904223u;
        byte = static_cast<unsigned char>(x >> 24);
    }
    return row;
}

avsg_pool_config pool_config() {
    auto config = avsg::init<avsg_pool_config>();
    config.layers = kLayers;
    config.rows = kStates * kBlocks * kPage;
    config.segments = 2;
    config.segment_bytes[0] = kSegments[0];
    config.segment_bytes[1] = kSegments[1];
    return config;
}

// Returns the paths of the runtime's library and of the kernels.
avsg_ascend ascend_options(const char *runtime, const char *kernels) {
    auto options = avsg::init<avsg_ascend>();
    options.runtime = runtime;
    options.kernels = kernels;
    return options;
}

avsg_engine_config engine_config(const avsg_ascend &options) {
    auto config = avsg::init<avsg_engine_config>();
    config.device = "ascend";
    config.ascend = &options;
    config.k = kK;
    config.tokens = kTokens;
    config.slots = kSlots;
    config.page = kPage;
    config.states = kStates;
    config.cores = 4;
    return config;
}

class Decoder {
   public:
    Decoder(const Runtime &runtime, const char *library, const char *kernels)
        : runtime_(runtime),
          pool_(pool_config()),
          engine_(engine_config(ascend_options(library, kernels)), pool_),
          plan_(engine_, kRows, kStates),
          out_(plan_.arrays(AVSG_MEMORY_DEVICE)) {
        for (int request = 0; request < kStates; request++)
            for (std::int32_t id = 0; id < kPrompt; id++)
                for (int layer = 0; layer < kLayers; layer++)
                    pool_.write_row(layer, pool_row(request, id), row_of(request, layer, id));
        std::vector<std::int32_t> blocks(kStates * kBlocks);
        for (std::size_t i = 0; i < blocks.size(); i++) blocks[i] = static_cast<std::int32_t>(i);
        blocks_.write(blocks);
        cu_q_.write({0, kTokens, 2 * kTokens});
        state_.write({1, 0});
        generation_.write({1, 1});
    }

    // Writes the inputs of the next step to device memory. Its ids wait in `selected_`.
    void prepare(int step) {
        ids_on_host_.clear();
        for (int row = 0; row < kRows; row++)
            for (int i = 0; i < kK; i++) ids_on_host_.push_back((step * 3 + row * 11 + i * 23) % (length_ + 1));
        selected_.write(ids_on_host_);
        ids_.write(std::vector<std::int32_t>(ids_.size(), 0x7fffffff));
        stable_.write(std::vector<std::int32_t>(kStates, length_));
        seq_.write(std::vector<std::int32_t>(kStates, length_ + kTokens));
        for (int layer = 0; layer < kLayers; layer++)
            for (int segment = 0; segment < 2; segment++) {
                std::vector<unsigned char> rows;
                for (int row = 0; row < kRows; row++) {
                    const auto bytes = row_of(row / kTokens, layer, length_ + row % kTokens);
                    const auto first = bytes.begin() + (segment == 0 ? 0 : static_cast<std::ptrdiff_t>(kSegments[0]));
                    rows.insert(rows.end(), first, first + static_cast<std::ptrdiff_t>(kSegments[segment]));
                }
                fresh_[layer][segment].write(rows);
            }
    }

    // Queues one step. Nothing here reads an array or waits, so the step can be captured.
    void queue(Runtime::Stream stream) {
        ids_.copy_in(selected_, stream);
        auto batch = avsg::init<avsg_batch>();
        batch.ids = avsg::ints(ids_);
        batch.ids_stride = batch.k = kK;
        batch.cu_q = avsg::ints(cu_q_);
        batch.state = avsg::ints(state_);
        batch.generation = avsg::ints(generation_);
        batch.stable_len = avsg::ints(stable_);
        batch.seq_len = avsg::ints(seq_);
        batch.block_table = avsg::ints(blocks_);
        batch.block_stride = kBlocks;
        engine_.plan(batch, plan_, stream);
        for (int layer = 0; layer < kLayers; layer++) {
            const auto fresh = avsg::fresh(fresh_[layer][0], fresh_[layer][1]);
            engine_.transfer(plan_, layer, fresh, stream);
            // Attention reads the layer's slots here.
            engine_.append(batch, layer, fresh, stream);
        }
    }

    // Compares each selected row with the bytes in its slot.
    void check_rows() {
        std::vector<std::int32_t> slots(kRows * kK);
        runtime_.copy(slots.data(), out_.slot, slots.size() * sizeof slots[0], kDeviceToHost);
        for (int layer = 0; layer < kLayers; layer++)
            for (std::size_t at = 0; at < slots.size(); at++) {
                const int request = static_cast<int>(at) / kK / kTokens, state = 1 - request;
                const auto want = row_of(request, layer, ids_on_host_[at]);
                std::vector<unsigned char> row;
                for (int segment = 0; slots[at] >= 0 && segment < 2; segment++) {
                    const auto buffer = engine_.buffer(layer, segment);
                    const auto *slot = static_cast<const unsigned char *>(buffer.base) +
                                       static_cast<std::size_t>(state) * buffer.state_stride +
                                       static_cast<std::size_t>(slots[at]) * buffer.slot_stride;
                    row.resize(row.size() + buffer.bytes);
                    runtime_.copy(&row[row.size() - buffer.bytes], slot, buffer.bytes, kDeviceToHost);
                }
                checked_++;
                if (row != want) wrong_++;
            }
        length_++;  // the draft token of each request is rejected
    }

    int report() const {
        std::printf("%d steps queued, %d replayed from one capture: %zu rows checked, %zu wrong\n", kQueuedSteps,
                    kReplayedSteps, checked_, wrong_);
        return wrong_ == 0 && checked_ > 0 ? 0 : 1;
    }

   private:
    static std::size_t pool_row(int request, std::int32_t id) {
        return static_cast<std::size_t>(request * kBlocks * kPage + id);
    }

    const Runtime &runtime_;
    avsg::Pool pool_;
    avsg::Engine engine_;
    avsg::Plan plan_;
    avsg_plan_arrays out_;
    Ints selected_{runtime_, kRows * kK}, ids_{runtime_, kRows * kK};
    Ints cu_q_{runtime_, kStates + 1}, state_{runtime_, kStates}, generation_{runtime_, kStates};
    Ints stable_{runtime_, kStates}, seq_{runtime_, kStates}, blocks_{runtime_, kStates * kBlocks};
    Bytes fresh_[kLayers][2] = {{{runtime_, kRows * kSegments[0]}, {runtime_, kRows * kSegments[1]}},
                                {{runtime_, kRows * kSegments[0]}, {runtime_, kRows * kSegments[1]}}};
    std::vector<std::int32_t> ids_on_host_;
    std::int32_t length_ = kPrompt;
    std::size_t checked_ = 0, wrong_ = 0;
};

int run(const char *library, const char *kernels) {
    const Runtime runtime(library);
    Decoder decoder(runtime, library, kernels);
    const Runtime::Stream stream = runtime.create_stream();
    for (int step = 0; step < kQueuedSteps; step++) {
        decoder.prepare(step);
        decoder.queue(stream);
        runtime.synchronize(stream);
        decoder.check_rows();
    }

    Runtime::Graph graph = nullptr;
    const std::int32_t global_mode = 0;
    runtime.call<Runtime::Stream, std::int32_t>("aclmdlRICaptureBegin", stream, global_mode);
    decoder.queue(stream);
    runtime.call<Runtime::Stream, Runtime::Graph *>("aclmdlRICaptureEnd", stream, &graph);
    for (int step = kQueuedSteps; step < kQueuedSteps + kReplayedSteps; step++) {
        decoder.prepare(step);
        runtime.call<Runtime::Graph, Runtime::Stream>("aclmdlRIExecuteAsync", graph, stream);
        runtime.synchronize(stream);
        decoder.check_rows();
    }
    runtime.call<Runtime::Graph>("aclmdlRIDestroy", graph);
    runtime.call<Runtime::Stream>("aclrtDestroyStream", stream);
    return decoder.report();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: streams RUNTIME KERNELS\n");
        return 2;
    }
    try {
        return run(argv[1], argv[2]);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
