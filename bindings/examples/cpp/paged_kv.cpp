// A small paged KV cache on AVSG. Four layers share an indexer and therefore one plan, each step
// has three draft tokens (MTP-3), requests join, are forked and leave, and every row that attention would
// read is compared.
//
//   c++ -std=c++17 paged_kv.cpp $(pkg-config --cflags --libs avsg) -o paged_kv && ./paged_kv
#include <avsg.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

namespace {

constexpr int kLayers = 4, kTokens = 4, kK = 48, kSlots = 512, kStates = 3, kPage = 16, kSteps = 200;
constexpr std::size_t kSegments[2] = {128, 32};  // the latent and the rotary part
constexpr int kPoolBlocks = 192, kRequestBlocks = 64;

// Fills the row of a token in one layer.
void make_row(int request, int layer, std::int32_t id, std::vector<unsigned char> &row) {
    std::uint32_t x = (static_cast<std::uint32_t>(request) * 31u + static_cast<std::uint32_t>(layer)) * 40503u +
                      static_cast<std::uint32_t>(id) * 2654435761u;
    for (auto &byte : row) {
        x = x * 1664525u + 1013904223u;
        byte = static_cast<unsigned char>(x >> 24);
    }
}

struct Request {
    int number;
    std::int32_t length;      // tokens whose rows are final
    std::int32_t max_length;  // the length at which the request leaves
    std::vector<std::int32_t> blocks;
};

avsg_pool_config pool_config() {
    auto config = avsg::init<avsg_pool_config>();
    config.layers = kLayers;
    config.rows = kPoolBlocks * kPage;
    config.segments = 2;
    config.segment_bytes[0] = kSegments[0];
    config.segment_bytes[1] = kSegments[1];
    return config;
}

avsg_engine_config engine_config() {
    auto config = avsg::init<avsg_engine_config>();
    config.k = kK;
    config.tokens = kTokens;
    config.slots = kSlots;
    config.page = kPage;
    config.states = kStates;
    config.cores = 2;
    return config;
}

class Cache {
   public:
    Cache()
        : pool_(pool_config()),
          engine_(engine_config(), pool_),
          plan_(engine_, kStates * kTokens, kStates),
          out_(plan_.arrays()) {
        for (int layer = 0; layer < kLayers; layer++)
            for (int segment = 0; segment < 2; segment++) buffers_[layer][segment] = engine_.buffer(layer, segment);
        for (std::int32_t block = kPoolBlocks; block-- > 0;) free_.push_back(block);
    }

    bool can_join() const {
        for (const auto &request : requests_)
            if (!request && free_.size() >= kRequestBlocks) return true;
        return false;
    }

    // Gives a request blocks of the pool, and a state with a new generation, which it returns.
    int join(int number, std::int32_t prompt, std::int32_t max_length) {
        for (int state = 0; state < kStates; state++) {
            if (requests_[state]) continue;
            std::vector<std::int32_t> blocks(free_.end() - kRequestBlocks, free_.end());
            free_.resize(free_.size() - kRequestBlocks);
            requests_[state] = Request{number, prompt, max_length, blocks};
            generation_[state]++;
            std::vector<unsigned char> row(kSegments[0] + kSegments[1]);
            for (int layer = 0; layer < kLayers; layer++)
                for (std::int32_t id = 0; id < prompt; id++) {
                    make_row(number, layer, id, row);
                    const std::size_t at = static_cast<std::size_t>(blocks[id / kPage]) * kPage + id % kPage;
                    pool_.write_row(layer, at, row);
                }
            return state;
        }
        throw std::logic_error("no state is free");
    }

    // Adds a second sample of a running request, with rows of its own. Its first step hits what the other's would. Returns
    // false if no request runs.
    bool fork() {
        for (int from = 0; from < kStates; from++) {
            if (!requests_[from]) continue;
            const Request &request = *requests_[from];
            const int to = join(request.number, request.length, request.max_length);
            engine_.fork(from, generation_[from], to, generation_[to]);
            forks_++;
            return true;
        }
        return false;
    }

    // Makes one step of every request: one plan, a transfer for each layer, and one append for all of them.
    void step(int number) {
        std::vector<std::int32_t> ids, cu_q{0}, state, generation, stable, seq, blocks;
        for (int s = 0; s < kStates; s++) {
            if (!requests_[s]) continue;
            const Request &request = *requests_[s];
            for (int g = 0; g < kTokens; g++) select(number + g, request.length + g + 1, ids);
            cu_q.push_back(cu_q.back() + kTokens);
            state.push_back(s);
            generation.push_back(generation_[s]);
            stable.push_back(request.length);
            seq.push_back(request.length + kTokens);
            blocks.insert(blocks.end(), request.blocks.begin(), request.blocks.end());
        }
        auto batch = avsg::init<avsg_batch>();
        batch.ids = avsg::ints(ids);
        batch.ids_stride = batch.k = kK;
        batch.cu_q = avsg::ints(cu_q);
        batch.state = avsg::ints(state);
        batch.generation = avsg::ints(generation);
        batch.stable_len = avsg::ints(stable);
        batch.seq_len = avsg::ints(seq);
        batch.block_table = avsg::ints(blocks);
        batch.block_stride = kRequestBlocks;

        engine_.plan(batch, plan_);
        std::array<decltype(fresh_rows(state, 0)), kLayers> rows;
        std::array<avsg_fresh, kLayers> fresh;
        std::array<std::size_t, kLayers> layers;
        for (int layer = 0; layer < kLayers; layer++) {
            rows[layer] = fresh_rows(state, layer);
            fresh[layer] = avsg::fresh(rows[layer][0], rows[layer][1]);
            engine_.transfer(plan_, layer, fresh[layer]);
            attend(layer, ids, state);
            layers[layer] = layer;
        }
        engine_.append(batch, layers, fresh);
        const auto counters = plan_.counters();
        selected_ += counters.selected;
        hits_ += counters.hits;
        for (int s = 0; s < kStates; s++) {
            if (!requests_[s]) continue;
            requests_[s]->length += 1 + (number + s) % kTokens;  // some drafts are rejected
            if (requests_[s]->length < requests_[s]->max_length) continue;
            free_.insert(free_.end(), requests_[s]->blocks.begin(), requests_[s]->blocks.end());
            requests_[s].reset();
        }
    }

    int report() const {
        std::printf("%d layers on one plan: %zu rows a layer, %.2f %% hit, %zu forks, %zu checked, %zu wrong\n", kLayers,
                    selected_, 100.0 * static_cast<double>(hits_) / static_cast<double>(selected_), forks_, checked_, wrong_);
        return wrong_ == 0 && checked_ > 0 && forks_ > 0 ? 0 : 1;
    }

   private:
    static void select(int step, std::int32_t length, std::vector<std::int32_t> &ids) {
        std::vector<bool> taken(static_cast<std::size_t>(length));
        for (int i = 0; i < kK; i++) {
            std::int32_t id = i < 6 ? length - 1 - i : (step * 5 + i * 7) % length;
            while (taken[static_cast<std::size_t>(id)]) id = (id + 1) % length;
            taken[static_cast<std::size_t>(id)] = true;
            ids.push_back(id);
        }
    }

    // Returns the fresh rows that this step's forward pass has made on the device, one vector per
    // segment.
    std::vector<std::vector<unsigned char>> fresh_rows(const std::vector<std::int32_t> &state, int layer) const {
        std::vector<std::vector<unsigned char>> rows(2);
        std::vector<unsigned char> row(kSegments[0] + kSegments[1]);
        for (const std::int32_t s : state)
            for (int g = 0; g < kTokens; g++) {
                make_row(requests_[s]->number, layer, requests_[s]->length + g, row);
                rows[0].insert(rows[0].end(), row.begin(), row.begin() + kSegments[0]);
                rows[1].insert(rows[1].end(), row.begin() + kSegments[0], row.end());
            }
        return rows;
    }

    // Reads the device buffer as a paged attention kernel does, through page tables in which slots
    // are positions.
    void attend(int layer, const std::vector<std::int32_t> &ids, const std::vector<std::int32_t> &state) {
        const std::size_t pages = kSlots / kPage;
        std::vector<std::int32_t> table(state.size() * pages), lengths(state.size());
        engine_.page_table(state, kPage, table, pages, lengths);
        std::vector<unsigned char> row(kSegments[0] + kSegments[1]);
        for (std::size_t q = 0; q < state.size() * kTokens; q++)
            for (int i = 0; i < kK; i++) {
                const std::size_t r = q / kTokens;
                const std::int32_t slot = out_.slot[q * out_.k + static_cast<std::size_t>(i)];
                checked_++;
                if (slot < 0 || slot >= lengths[r]) {
                    wrong_++;
                    continue;
                }
                const std::size_t page = static_cast<std::size_t>(table[r * pages + static_cast<std::size_t>(slot / kPage)]);
                const std::size_t at = page * kPage + static_cast<std::size_t>(slot % kPage);
                make_row(requests_[state[r]]->number, layer, ids[q * kK + static_cast<std::size_t>(i)], row);
                const unsigned char *want = row.data();
                for (int segment = 0; segment < 2; segment++) {
                    const avsg_buffer &buffer = buffers_[layer][segment];
                    const auto *got = static_cast<const unsigned char *>(buffer.base) + at * buffer.slot_stride;
                    if (std::memcmp(got, want, buffer.bytes) != 0) wrong_++;
                    want += buffer.bytes;
                }
            }
    }

    avsg::Pool pool_;
    avsg::Engine engine_;
    avsg::Plan plan_;
    avsg_plan_arrays out_;
    avsg_buffer buffers_[kLayers][2];
    std::optional<Request> requests_[kStates];
    std::int32_t generation_[kStates] = {};
    std::vector<std::int32_t> free_;
    std::size_t selected_ = 0, hits_ = 0, forks_ = 0, checked_ = 0, wrong_ = 0;
};

}  // namespace

int main() {
    try {
        Cache cache;
        for (int step = 0, number = 1; step < kSteps; step++) {
            if (cache.can_join()) {
                // Every third request is a second sample of one that runs.
                if (number % 3 != 0 || !cache.fork())
                    cache.join(number, 200 + number * 13 % 90, 500 + number * 37 % 300);
                number++;
            }
            cache.step(step);
        }
        return cache.report();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
