// AVSG as a guest: the program owns its memory, threads and KV layout, and lends them. The host pool is
// block-major with padded rows, the device buffer is paged, tasks run on the program's threads, and two
// indexers serve two layers each. Requests join with a prompt that one append writes, take steps of four tokens
// (three of them drafts, most of which are rejected and rewritten in the next step), and leave; a state without a
// request has a vacant place in the batch. Every row that attention would read is compared with what the
// program knows about it.
//
//   guest STEPS                     on "cpu"
//   guest STEPS RUNTIME KERNELS     on "ascend", with libascendcl.so or its simulator and what `avsg emit` wrote
//
// `bindings/examples/run cpp` runs both, the second one on the simulator.
#include "guest_parts.hpp"

#include <chrono>
#include <optional>

namespace {

constexpr int kRows = kStates * kTokens;

// Writes the row of a token in one layer. A token that is rewritten after a rejection has another version.
void make_row(std::int32_t request, int layer, std::int32_t id, std::uint32_t version, unsigned char *row) {
    const auto token = static_cast<std::uint64_t>(request) << 32 | static_cast<std::uint32_t>(id);
    const auto place = static_cast<std::uint64_t>(version) << 8 | static_cast<std::uint64_t>(layer);
    std::uint64_t x = token * 0x9e3779b97f4a7c15u + place * 0xbf58476d1ce4e5b9u;
    for (std::size_t i = 0; i < kRowBytes; i += sizeof x) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        std::memcpy(row + i, &x, sizeof x);
    }
}

struct Request {
    std::int32_t number;                 // is its generation, too
    std::int32_t length;                 // tokens that are accepted
    std::int32_t max_length;             // the length at which the request leaves
    std::vector<std::int32_t> blocks;    // its blocks of the host pool
    std::vector<std::uint32_t> version;  // of each token's row
};

struct Counts {
    std::size_t joins = 0, leaves = 0, rejected = 0, vacant = 0, compared = 0, wrong = 0;
    std::size_t hits = 0, selected = 0, launches = 0;
    double engine_ms = 0;
};

class Guest {
   public:
    // `library` is NULL for "cpu".
    Guest(Allocator &allocator, const Runtime *runtime, const char *library, const char *kernels)
        : host_(allocator),
          device_(allocator, runtime),
          pool_(host_.lend()),
          workers_(workers_config()),
          engine_(make_engine(allocator.lend(), library, kernels)),
          plan_(engine_, kRows, kStates),
          out_(plan_.arrays()) {
        for (std::int32_t block = 0; block < kPoolBlocks; block++) free_.push_back(block * 7 % kPoolBlocks);
    }

    // Makes one step of all requests, after one may have joined.
    void step(std::uint32_t number) {
        if (number % 5 == 0) join();
        describe(number);
        for (int layer = 0; layer < kLayers; layer++) {
            const std::uint32_t indexer = kLayerIndexer[layer];
            if (layer == 0 || indexer != kLayerIndexer[layer - 1]) select_and_plan(indexer);
            const auto fresh = fresh_rows(layer);
            engine_.transfer(plan_, layer, fresh);
            attend(layer);
            engine_.append(batch_, layer, fresh);
        }
        for (auto &request : requests_) {
            if (!request) continue;
            const std::int32_t accepted = 1 + random(random(kTokens) + 1);
            counts_.rejected += static_cast<std::size_t>(kTokens - accepted);
            request->length += accepted;
            if (request->length >= request->max_length) leave(request);
        }
    }

    Counts counts() {
        counts_.launches = threads_.launches();
        return counts_;
    }

   private:
    avsg_workers_config workers_config() {
        auto config = avsg::init<avsg_workers_config>();
        config.threads = 3;
        config.executor = Threads::execute;
        config.user = &threads_;
        return config;
    }

    avsg::Engine make_engine(const avsg_allocator &allocator, const char *library, const char *kernels) {
        const avsg_caller_buffer buffer = device_.lend();
        auto options = avsg::init<avsg_ascend>();
        auto config = avsg::init<avsg_engine_config>();
        config.k = kK;
        config.tokens = kTokens;
        config.slots = kSlots;
        config.states = kStates;
        config.page = kPage;
        config.cores = 3;
        config.layer_indexer = kLayerIndexer;
        config.layer_indexers = kLayers;
        config.allocator = &allocator;
        config.buffer = &buffer;
        config.global_slots = 1;  // a plan returns places in the device buffer
        if (library == nullptr) {
            config.workers = workers_.get();
        } else {
            config.device = "ascend";
            options.runtime = library;
            options.kernels = kernels;
            config.ascend = &options;
        }
        const auto start = std::chrono::steady_clock::now();
        avsg::Engine engine(config, pool_);
        counts_.engine_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        return engine;
    }

    // Returns a number below `n`.
    std::int32_t random(std::int32_t n) {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::int32_t>((random_ >> 33) % static_cast<std::uint64_t>(n));
    }

    // Gives a new request a free state, blocks of both memories and a generation, and writes its prompt's rows.
    void join() {
        const auto is_free = [](const std::optional<Request> &request) { return !request; };
        const auto place = std::find_if(requests_.begin(), requests_.end(), is_free);
        if (place == requests_.end()) return;
        const auto state = static_cast<std::int32_t>(place - requests_.begin());
        const std::int32_t prompt = 2 * kK + random(130), most = prompt + 20 + random(80);
        const auto number = static_cast<std::int32_t>(++counts_.joins);
        Request &request = place->emplace(Request{number, prompt, most, {}, {}});
        request.blocks.assign(free_.end() - kRequestBlocks, free_.end());
        request.version.resize(kRequestBlocks * kPage);
        free_.resize(free_.size() - kRequestBlocks);
        device_.move(state);

        const std::vector<std::int32_t> cu_q{0, prompt}, states{state}, generation{number}, stable{0}, seq{prompt};
        auto batch = avsg::init<avsg_batch>();
        batch.cu_q = avsg::ints(cu_q);
        batch.state = avsg::ints(states);
        batch.generation = avsg::ints(generation);
        batch.stable_len = avsg::ints(stable);
        batch.seq_len = avsg::ints(seq);
        batch.block_table = avsg::ints(request.blocks);
        batch.block_stride = kRequestBlocks;
        for (int layer = 0; layer < kLayers; layer++) {
            for (auto &segment : rows_) segment.clear();
            for (std::int32_t id = 0; id < prompt; id++) add_row(request, layer, id);
            engine_.append(batch, layer, avsg::fresh(rows_[0], rows_[1]));
        }
    }

    void leave(std::optional<Request> &request) {
        free_.insert(free_.begin(), request->blocks.begin(), request->blocks.end());
        request.reset();
        counts_.leaves++;
    }

    // Fills all of the batch but its ids. A state without a request is vacant: its state is -1.
    void describe(std::uint32_t number) {
        for (auto *array : {&cu_q_, &state_, &generation_, &stable_, &seq_, &blocks_}) array->clear();
        cu_q_.push_back(0);
        for (std::int32_t s = 0; s < kStates; s++) {
            auto &request = requests_[static_cast<std::size_t>(s)];
            cu_q_.push_back(cu_q_.back() + kTokens);
            state_.push_back(request ? s : -1);
            generation_.push_back(request ? request->number : 0);
            stable_.push_back(request ? request->length : 0);
            seq_.push_back(request ? request->length + kTokens : 0);
            blocks_.resize(blocks_.size() + kRequestBlocks);
            if (!request) continue;
            std::copy(request->blocks.begin(), request->blocks.end(), blocks_.end() - kRequestBlocks);
            // This step's tokens, also those that the last step wrote and that were rejected.
            for (int g = 0; g < kTokens; g++) request->version[static_cast<std::size_t>(request->length + g)] = number;
        }
        batch_ = avsg::init<avsg_batch>();
        batch_.ids_stride = batch_.k = kK;
        batch_.cu_q = avsg::ints(cu_q_);
        batch_.state = avsg::ints(state_);
        batch_.generation = avsg::ints(generation_);
        batch_.stable_len = avsg::ints(stable_);
        batch_.seq_len = avsg::ints(seq_);
        batch_.block_table = avsg::ints(blocks_);
        batch_.block_stride = kRequestBlocks;
    }

    // Selects the ids of an indexer for each token, the newest ones and some that drift with time, and plans them.
    void select_and_plan(std::uint32_t indexer) {
        ids_.clear();
        for (const auto &request : requests_)
            for (std::int32_t g = 0; g < kTokens; g++) {
                const std::int32_t length = request ? request->length + g + 1 : 1000;
                const std::int32_t drift = request ? request->length / 8 : 0, step = indexer == 0 ? 7 : 9;
                std::vector<bool> taken(static_cast<std::size_t>(length));
                for (std::int32_t i = 0; i < kK; i++) {
                    std::int32_t id = i < 5 ? length - 1 - i : (drift + i * step + random(9)) % length;
                    while (taken[static_cast<std::size_t>(id)]) id = (id + 1) % length;
                    taken[static_cast<std::size_t>(id)] = true;
                    ids_.push_back(id);
                }
            }
        batch_.ids = avsg::ints(ids_);
        batch_.indexer = indexer;
        engine_.plan(batch_, plan_);
        const auto counters = plan_.counters();
        counts_.hits += counters.hits;
        counts_.selected += counters.selected;
    }

    void add_row(const Request &request, int layer, std::int32_t id) {
        unsigned char row[kRowBytes];
        make_row(request.number, layer, id, request.version[static_cast<std::size_t>(id)], row);
        rows_[0].insert(rows_[0].end(), row, row + kSegments[0]);
        rows_[1].insert(rows_[1].end(), row + kSegments[0], row + kRowBytes);
    }

    // Returns this step's rows of one layer, which the forward pass has made. Those of vacant places are not read.
    avsg_fresh fresh_rows(int layer) {
        for (int segment = 0; segment < 2; segment++) rows_[segment].clear();
        for (const auto &request : requests_)
            for (int g = 0; g < kTokens; g++) {
                if (request) {
                    add_row(*request, layer, request->length + g);
                } else {
                    for (int segment = 0; segment < 2; segment++)
                        rows_[segment].resize(rows_[segment].size() + kSegments[segment]);
                }
            }
        return avsg::fresh(rows_[0], rows_[1]);
    }

    // Compares what attention reads: the slot of each selected id. A vacant row has no slots.
    void attend(int layer) {
        device_.fetch(layer);
        for (int row = 0; row < kRows; row++) {
            const int state = row / kTokens;
            const auto &request = requests_[static_cast<std::size_t>(state)];
            if (!request) counts_.vacant++;
            for (int i = 0; i < kK; i++) {
                const std::int32_t id = ids_[static_cast<std::size_t>(row * kK + i)];
                const std::int32_t place = out_.slot[static_cast<std::size_t>(row * kK + i)];
                counts_.compared += request ? 1 : 0;
                if (!(request ? exact(*request, layer, state, id, place) : place == -1)) counts_.wrong++;
            }
        }
    }

    bool exact(const Request &request, int layer, int state, std::int32_t id, std::int32_t place) const {
        unsigned char want[kRowBytes];
        make_row(request.number, layer, id, request.version[static_cast<std::size_t>(id)], want);
        const unsigned char *first = device_.slot(state, place, 0), *second = device_.slot(state, place, 1);
        return first != nullptr && std::memcmp(first, want, kSegments[0]) == 0 &&
               std::memcmp(second, want + kSegments[0], kSegments[1]) == 0;
    }

    Counts counts_;
    // Members are destroyed from the last to the first: what was lent outlives the pool and the engine.
    Threads threads_{2};
    HostPool host_;
    DeviceBuffer device_;
    avsg::Pool pool_;
    avsg::Workers workers_;
    avsg::Engine engine_;
    avsg::Plan plan_;
    avsg_plan_arrays out_;

    std::array<std::optional<Request>, kStates> requests_;
    std::vector<std::int32_t> free_;  // blocks of the host pool
    std::uint64_t random_ = 1;
    avsg_batch batch_;
    std::vector<std::int32_t> ids_, cu_q_, state_, generation_, stable_, seq_, blocks_;
    std::vector<unsigned char> rows_[2];
};

int run(std::uint32_t steps, const char *library, const char *kernels) {
    std::optional<Runtime> runtime;
    if (library != nullptr) runtime.emplace(library);
    Allocator allocator(runtime ? &*runtime : nullptr);
    Counts n;
    // The first engine of a process measures what later ones know.
    for (const std::uint32_t of_this : {0u, steps}) {
        Guest guest(allocator, runtime ? &*runtime : nullptr, library, kernels);
        for (std::uint32_t step = 1; step <= of_this; step++) guest.step(step);
        n = guest.counts();
        std::printf("%s engine of the process made in %.1f ms\n", of_this == 0 ? "first" : "second", n.engine_ms);
    }
    const double hits = 100.0 * static_cast<double>(n.hits) / static_cast<double>(n.selected);
    std::printf("%zu joins, %zu leaves, %zu drafts rejected, %zu vacant rows\n", n.joins, n.leaves, n.rejected,
                n.vacant);
    std::printf("%.1f %% hits, %zu launches on the program's threads\n", hits, n.launches);
    if (!allocator.settled()) std::printf("some of the allocator's memory did not come back\n");
    std::printf("%u steps, %zu rows compared, %zu wrong\n", steps, n.compared, n.wrong);
    const bool all = n.leaves > 0 && n.vacant > 0 && n.rejected > 0 && n.compared > 0 && allocator.settled();
    return n.wrong == 0 && all ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 2 && argc != 4) {
        std::fprintf(stderr, "usage: guest STEPS [RUNTIME KERNELS]\n");
        return 2;
    }
    try {
        const auto steps = static_cast<std::uint32_t>(std::stoul(argv[1]));
        return argc == 4 ? run(steps, argv[2], argv[3]) : run(steps, nullptr, nullptr);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
