// What the program guest.cpp owns and lends to AVSG: an allocator, threads, a host pool and a device buffer.
#ifndef GUEST_PARTS_HPP
#define GUEST_PARTS_HPP

#include <avsg.hpp>

#include "ascend_runtime.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

constexpr int kLayers = 4, kTokens = 4, kK = 32, kSlots = 256, kStates = 4, kPage = 16;
constexpr std::uint32_t kLayerIndexer[kLayers] = {0, 0, 1, 1};
constexpr int kRequestBlocks = 20, kPoolBlocks = 88;
constexpr std::size_t kSegments[2] = {4096, 512};  // the parts of a row
constexpr std::size_t kRowBytes = kSegments[0] + kSegments[1];

// The program's allocator. It knows what it has given out, and takes back nothing else.
class Allocator {
   public:
    // Without a runtime all memory is the process's.
    explicit Allocator(const Runtime *runtime) : runtime_(runtime) {}
    Allocator(const Allocator &) = delete;
    Allocator &operator=(const Allocator &) = delete;

    void *allocate(std::int32_t kind, std::size_t bytes, std::size_t alignment) {
        void *address = nullptr;
        if (kind == AVSG_MEMORY_HOST || runtime_ == nullptr) {
            address = ::operator new(bytes, std::align_val_t{alignment});
        } else if (kind == AVSG_MEMORY_PINNED) {
            runtime_->call<void **, std::size_t>("aclrtMallocHost", &address, bytes);
        } else {
            const std::int32_t huge_pages_first = 0;
            runtime_->call<void **, std::size_t, std::int32_t>("aclrtMalloc", &address, bytes, huge_pages_first);
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        given_[address] = {kind, bytes, alignment};
        return address;
    }
    void release(std::int32_t kind, void *address, std::size_t bytes) {
        Block block;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto found = given_.find(address);
            if (found == given_.end() || found->second.kind != kind || found->second.bytes != bytes) {
                mistakes_++;
                return;
            }
            block = found->second;
            given_.erase(found);
        }
        if (kind == AVSG_MEMORY_HOST || runtime_ == nullptr)
            ::operator delete(address, std::align_val_t{block.alignment});
        else
            runtime_->call<void *>(kind == AVSG_MEMORY_PINNED ? "aclrtFreeHost" : "aclrtFree", address);
    }
    // Lends the allocator to AVSG. No exception leaves its functions.
    avsg_allocator lend() {
        auto allocator = avsg::init<avsg_allocator>();
        allocator.user = this;
        allocator.allocate = [](void *user, std::int32_t kind, std::size_t bytes, std::size_t alignment) -> void * {
            try {
                return static_cast<Allocator *>(user)->allocate(kind, bytes, alignment);
            } catch (...) {
                return nullptr;
            }
        };
        allocator.release = [](void *user, std::int32_t kind, void *address, std::size_t bytes) {
            try {
                static_cast<Allocator *>(user)->release(kind, address, bytes);
            } catch (...) {
                static_cast<Allocator *>(user)->mistakes_++;
            }
        };
        return allocator;
    }
    // Returns whether all memory came back, and nothing else.
    bool settled() const { return given_.empty() && mistakes_ == 0; }

   private:
    struct Block {
        std::int32_t kind;
        std::size_t bytes, alignment;
    };
    const Runtime *runtime_;
    std::mutex mutex_;
    std::map<void *, Block> given_;
    std::atomic<int> mistakes_{0};
};

// Memory of the program's allocator.
class Memory {
   public:
    Memory(Allocator &allocator, avsg_memory_kind kind, std::size_t bytes)
        : allocator_(allocator), kind_(kind), data_(allocator.allocate(kind, bytes, 4096)), bytes_(bytes) {}
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory() { allocator_.release(kind_, data_, bytes_); }
    unsigned char *data() const { return static_cast<unsigned char *>(data_); }
    std::size_t size() const { return bytes_; }

   private:
    Allocator &allocator_;
    avsg_memory_kind kind_;
    void *data_;
    std::size_t bytes_;
};

// The program's threads. AVSG hands them its tasks and starts none of its own.
class Threads {
   public:
    explicit Threads(int helpers) {
        for (int i = 0; i < helpers; i++) threads_.emplace_back([this] { help(); });
    }
    Threads(const Threads &) = delete;
    Threads &operator=(const Threads &) = delete;
    ~Threads() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            stop_ = true;
        }
        wake_.notify_all();
        for (auto &thread : threads_) thread.join();
    }

    // An avsg_executor, whose `user` is a Threads.
    static void execute(void *user, avsg_task task, void *data, std::size_t count) {
        static_cast<Threads *>(user)->run(task, data, count);
    }
    std::size_t launches() const { return launches_; }

   private:
    void run(avsg_task task, void *data, std::size_t count) {
        std::unique_lock<std::mutex> lock(mutex_);
        launches_++;
        task_ = task;
        data_ = data;
        next_ = 0;
        count_ = count;
        wake_.notify_all();
        take(lock);
        done_.wait(lock, [this] { return running_ == 0; });
    }
    // Runs tasks until none is left to begin.
    void take(std::unique_lock<std::mutex> &lock) {
        while (next_ < count_) {
            const std::size_t index = next_++;
            running_++;
            lock.unlock();
            task_(data_, index);
            lock.lock();
            if (--running_ == 0) done_.notify_one();
        }
    }
    void help() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            wake_.wait(lock, [this] { return stop_ || next_ < count_; });
            if (stop_) return;
            take(lock);
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::vector<std::thread> threads_;
    avsg_task task_ = nullptr;
    void *data_ = nullptr;
    std::size_t next_ = 0, count_ = 0, running_ = 0, launches_ = 0;
    bool stop_ = false;
};

// The program's KV pool. A block holds kPage tokens of all layers: per layer the first segments of its rows, then
// the second ones, each row padded, and padding at the end of the block.
class HostPool {
   public:
    explicit HostPool(Allocator &allocator) : memory_(allocator, AVSG_MEMORY_HOST, kPoolBlocks * kBlock) {}

    avsg::Pool lend() const {
        auto config = avsg::init<avsg_pool_config>();
        config.layers = kLayers;
        config.rows = kPoolBlocks * kPage;
        config.segments = 2;
        std::copy(kSegments, kSegments + 2, config.segment_bytes);
        avsg_region region{memory_.data(), memory_.size(), 0};
        avsg_pool_part parts[2] = {};
        for (std::size_t segment = 0; segment < 2; segment++) {
            parts[segment].segment = segment;
            parts[segment].offset = segment * kPage * kStride[0];
            parts[segment].layers = kLayers;
            parts[segment].layer_stride = kLayer;
            parts[segment].rows = kPoolBlocks * kPage;
        }
        auto layout = avsg::init<avsg_pool_layout>();
        layout.block_rows = kPage;
        layout.block_stride[0] = layout.block_stride[1] = kBlock;
        std::copy(kStride, kStride + 2, layout.row_stride);
        layout.regions = &region;
        layout.region_count = 1;
        layout.parts = parts;
        layout.part_count = 2;
        config.layout = &layout;
        return avsg::Pool(config);
    }

   private:
    static constexpr std::size_t kStride[2] = {kSegments[0] + 16, kSegments[1] + 8};
    static constexpr std::size_t kLayer = kPage * (kStride[0] + kStride[1]);
    static constexpr std::size_t kBlock = kLayers * kLayer + 256;
    Memory memory_;
};

// The program's device buffer: blocks of slots. A state gets its blocks together with a generation, in any order,
// and the table that lists them is where the slots are.
class DeviceBuffer {
   public:
    static constexpr std::int32_t kBlockSlots = 32, kStateBlocks = kSlots / kBlockSlots;

    DeviceBuffer(Allocator &allocator, const Runtime *runtime)
        : runtime_(runtime),
          memory_(allocator, AVSG_MEMORY_DEVICE, kLayers * kLayer),
          table_(allocator, AVSG_MEMORY_DEVICE, kStates * kStateBlocks * sizeof(std::int32_t)),
          fetched_(runtime == nullptr ? 0 : kLayer) {
        const std::vector<unsigned char> zeros(memory_.size());
        write(memory_, zeros.data());
        for (std::size_t layer = 0; layer < kLayers; layer++)
            for (std::size_t segment = 0; segment < 2; segment++)
                bases_[layer * 2 + segment] = memory_.data() + layer * kLayer + kSegmentStart[segment];
        for (std::int32_t i = 0; i < kBlocks; i++) free_.push_back(i * 7 % kBlocks);
        for (std::int32_t &block : blocks_) block = take();
        write(table_, blocks_.data());
    }

    // Gives a state other blocks. Its generation changes with them.
    void move(int state) {
        const auto first = blocks_.begin() + state * kStateBlocks;
        free_.insert(free_.begin(), first, first + kStateBlocks);
        std::for_each(first, first + kStateBlocks, [this](std::int32_t &block) { block = take(); });
        write(table_, blocks_.data());
    }

    avsg_caller_buffer lend() const {
        auto buffer = avsg::init<avsg_caller_buffer>();
        buffer.bases = bases_.data();
        buffer.base_count = bases_.size();
        buffer.block_slots = kBlockSlots;
        for (int segment = 0; segment < 2; segment++) {
            buffer.slot_stride[segment] = kStride[segment];
            buffer.block_stride[segment] = kStride[segment] * kBlockSlots;
        }
        buffer.state_blocks = reinterpret_cast<const std::int32_t *>(table_.data());
        buffer.state_blocks_len = blocks_.size();
        buffer.blocks = kBlocks;
        return buffer;
    }

    // Makes the slots of a layer readable on the host.
    void fetch(int layer) {
        layer_ = memory_.data() + static_cast<std::size_t>(layer) * kLayer;
        if (runtime_ == nullptr) return;
        runtime_->copy(fetched_.data(), layer_, kLayer, kDeviceToHost);
        layer_ = fetched_.data();
    }
    // Returns a segment of the fetched layer's slot at a place; NULL if the place is in no block of the state.
    const unsigned char *slot(int state, std::int32_t place, int segment) const {
        const auto first = blocks_.begin() + state * kStateBlocks, end = first + kStateBlocks;
        if (place < 0 || std::find(first, end, place / kBlockSlots) == end) return nullptr;
        return layer_ + kSegmentStart[segment] + static_cast<std::size_t>(place) * kStride[segment];
    }

   private:
    static constexpr std::int32_t kBlocks = (kStates + 1) * kStateBlocks;
    static constexpr std::size_t kStride[2] = {kSegments[0] + 64, kSegments[1] + 32};
    static constexpr std::size_t kSegmentStart[2] = {0, kBlocks * kBlockSlots * kStride[0]};
    static constexpr std::size_t kLayer = kBlocks * kBlockSlots * (kStride[0] + kStride[1]);

    std::int32_t take() {
        const std::int32_t block = free_.back();
        free_.pop_back();
        return block;
    }
    void write(const Memory &memory, const void *bytes) {
        if (runtime_ == nullptr)
            std::memcpy(memory.data(), bytes, memory.size());
        else
            runtime_->copy(memory.data(), bytes, memory.size(), kHostToDevice);
    }

    const Runtime *runtime_;
    Memory memory_, table_;
    std::vector<unsigned char> fetched_;
    const unsigned char *layer_ = nullptr;
    std::array<void *, kLayers * 2> bases_;
    std::array<std::int32_t, kStates * kStateBlocks> blocks_;  // what the table holds
    std::vector<std::int32_t> free_;
};

#endif  // GUEST_PARTS_HPP
