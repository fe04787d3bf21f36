#include "group.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace {

void check(avsg_status status, const char *call) {
    if (status == AVSG_OK) return;
    throw std::runtime_error(std::string(call) + ": " + avsg_status_name(status) + ": " + avsg_last_error());
}
#define CHECK(call) check((call), #call)

// Returns a zeroed struct of the C interface with its size set.
template <class T>
T sized() {
    T value;
    std::memset(&value, 0, sizeof value);
    value.size = sizeof value;
    return value;
}

avsg_i32s array(const std::vector<int32_t> &values) { return {values.data(), values.size()}; }

// The arrays of a batch with one request.
struct OneRequest {
    std::vector<int32_t> cu_q, state{0}, generation, stable_len, seq_len;
    avsg_batch batch = sized<avsg_batch>();

    OneRequest(const std::vector<int32_t> &ids, int32_t rows, int32_t number, int32_t stable, int32_t length)
        : cu_q{0, rows}, generation{number}, stable_len{stable}, seq_len{length} {
        batch.ids = array(ids);
        batch.k = batch.ids_stride = ids.size() / static_cast<size_t>(rows);
        batch.cu_q = array(cu_q);
        batch.state = array(state);
        batch.generation = array(generation);
        batch.stable_len = array(stable_len);
        batch.seq_len = array(seq_len);
    }
};

avsg_fresh fresh_of(const std::vector<uint8_t> &rows) {
    auto fresh = sized<avsg_fresh>();
    fresh.segments = 1;
    fresh.data[0] = rows.data();
    fresh.bytes[0] = rows.size();
    return fresh;
}

uint8_t *row_of(ggml_tensor *cache, size_t cell) { return static_cast<uint8_t *>(cache->data) + cell * cache->nb[1]; }

}  // namespace

Group::~Group() {
    avsg_plan_destroy(plan_);
    avsg_engine_destroy(engine_);
    avsg_pool_destroy(pool_);
}

bool Group::has(int layer) const { return std::find(layers_.begin(), layers_.end(), layer) != layers_.end(); }

size_t Group::index_of(int layer) const {
    return static_cast<size_t>(std::find(layers_.begin(), layers_.end(), layer) - layers_.begin());
}

void Group::start(const Settings &settings, uint32_t k, const std::vector<ggml_tensor *> &caches, int32_t length) {
    settings_ = settings;
    for (int layer : layers_) caches_.push_back(caches[static_cast<size_t>(layer)]);
    row_bytes_ = caches_[0]->nb[1];
    auto pool = sized<avsg_pool_config>();
    pool.layers = layers_.size();
    pool.rows = settings.context;
    pool.segments = 1;
    pool.segment_bytes[0] = row_bytes_;
    CHECK(avsg_pool_create(&pool, &pool_));
    auto engine = sized<avsg_engine_config>();
    engine.k = k;
    engine.tokens = settings.tokens;
    engine.slots = settings.slots;
    engine.states = engine.cores = 1;
    CHECK(avsg_engine_create(&engine, pool_, &engine_));
    CHECK(avsg_plan_create(engine_, settings.tokens, 1, &plan_));
    out_ = sized<avsg_plan_arrays>();
    CHECK(avsg_plan_get_arrays(plan_, AVSG_MEMORY_HOST, &out_));
    fresh_.resize(layers_.size());
    attended_.assign(layers_.size(), true);
    occupant_.assign(settings.slots, -1);
    for (size_t layer = 0; layer < layers_.size(); layer++) {
        for (size_t id = 0; id < static_cast<size_t>(length); id++) {
            CHECK(avsg_pool_write_row(pool_, layer, id, row_of(caches_[layer], id), row_bytes_));
        }
    }
}

void Group::begin(int32_t stable) {
    stable_ = stable;
    step_++;
    times = Times();
    attended_.assign(layers_.size(), false);
}

void Group::take_fresh(const RowsWritten &rows) {
    size_t layer = index_of(rows.layer);
    auto &fresh = fresh_[layer];
    {
        Lap lap(times.harness);
        drawn_ = static_cast<int32_t>(rows.cells.size());
        fresh.resize(rows.cells.size() * row_bytes_);
        for (size_t g = 0; g < rows.cells.size(); g++) {
            if (rows.cells[g] != stable_ + static_cast<int64_t>(g)) {
                throw std::runtime_error("token " + std::to_string(stable_ + static_cast<int64_t>(g)) + " is in cell " +
                                         std::to_string(rows.cells[g]) + "; ids are cells only if both count alike");
            }
            std::memcpy(&fresh[g * row_bytes_], row_of(rows.cache, static_cast<size_t>(rows.cells[g])), row_bytes_);
        }
    }
    if (layer > 0) attend(layer);
}

void Group::select(const IdsSelected &selected) {
    size_t k = static_cast<size_t>(selected.ids->ne[0]), rows = static_cast<size_t>(selected.ids->ne[1]);
    if (rows != static_cast<size_t>(drawn_) || attended_[0]) {
        throw std::runtime_error("layer " + std::to_string(selected.layer) + " selects ids before its rows are written");
    }
    ids_.resize(k * rows);
    for (size_t g = 0; g < rows; g++) {
        auto *row = reinterpret_cast<const int32_t *>(static_cast<const char *>(selected.ids->data) + g * selected.ids->nb[1]);
        // A token with less than K visible rows selects masked ones, too, which attention never reads.
        for (size_t i = 0; i < k; i++) ids_[g * k + i] = row[i] <= stable_ + static_cast<int32_t>(g) ? row[i] : -1;
    }
    plan();
    attend(0);
}

void Group::plan() {
    bool missed = settings_.fault == Fault::MissedInvalidation;
    OneRequest request(ids_, drawn_, settings_.every_row ? step_ : 1, missed ? -1 : stable_, stable_ + drawn_);
    {
        Lap lap(times.plan);
        CHECK(avsg_engine_plan(engine_, &request.batch, plan_, nullptr));
    }
    Lap lap(times.harness);
    count();
}

void Group::count() {
    auto counters = sized<avsg_plan_counters>();
    CHECK(avsg_plan_get_counters(plan_, &counters));
    size_t layers = layers_.size();
    step_bytes_ = counters.misses * row_bytes_;
    counts.bytes += step_bytes_ * layers;
    counts.selected += counters.selected * layers;
    counts.missed += counters.misses * layers;
    if (settings_.every_row) {
        occupant_.assign(occupant_.size(), -1);
    } else if (settings_.fault != Fault::MissedInvalidation) {
        for (int32_t &id : occupant_) {
            if (id < stable_) continue;
            counts.invalidated += layers;
            id = -1;
        }
    }
    for (size_t j = 0; j < counters.misses; j++) {
        int32_t &id = occupant_[static_cast<size_t>(out_.miss_slot[j])];
        if (id >= 0) counts.evicted += layers;
        id = out_.miss_id[j];
    }
}

void Group::attend(size_t layer) {
    if (settings_.fault == Fault::MissedInvalidation) {
        for (size_t g = 0; g < static_cast<size_t>(drawn_); g++) {
            CHECK(avsg_pool_write_row(pool_, layer, static_cast<size_t>(stable_) + g, &fresh_[layer][g * row_bytes_], row_bytes_));
        }
    }
    avsg_fresh fresh = fresh_of(fresh_[layer]);
    {
        Lap lap(times.copy);
        CHECK(avsg_engine_transfer(engine_, plan_, layer, &fresh, nullptr));
    }
    put_back(layer);
    append(layer);
    attended_[layer] = true;
}

void Group::put_back(size_t layer) {
    Lap lap(times.harness);
    ggml_tensor *cache = caches_[layer];
    // Every byte 255 is a NaN in each float format, so that one row read too many spoils the logits.
    std::memset(cache->data, 0xFF, ggml_nbytes(cache));
    auto buffer = sized<avsg_buffer>();
    CHECK(avsg_engine_get_buffer(engine_, layer, 0, &buffer));
    size_t k = ids_.size() / static_cast<size_t>(drawn_);
    for (size_t at = 0; at < ids_.size(); at++) {
        if (ids_[at] < 0) continue;
        size_t row = at / k, i = at % k;
        bool wrong = settings_.fault == Fault::WrongSlot && step_ == settings_.fault_step && at == 3;
        int32_t slot = out_.slot[row * out_.k + (wrong ? i + 1 : i)];
        if (slot < 0) throw std::runtime_error("id " + std::to_string(ids_[at]) + " has no slot");
        const auto *held = static_cast<const uint8_t *>(buffer.base) + static_cast<size_t>(slot) * buffer.slot_stride;
        std::memcpy(row_of(cache, static_cast<size_t>(ids_[at])), held, row_bytes_);
    }
}

void Group::append(size_t layer) {
    if (settings_.fault == Fault::MissedInvalidation) return;
    if (settings_.fault == Fault::StaleRow && step_ == settings_.fault_step) return;
    Lap lap(times.copy);
    OneRequest request(ids_, drawn_, settings_.every_row ? step_ : 1, stable_, stable_ + drawn_);
    avsg_fresh fresh = fresh_of(fresh_[layer]);
    CHECK(avsg_engine_append(engine_, &request.batch, layer, &fresh, nullptr));
}

void Group::finish() const {
    for (size_t layer = 0; layer < layers_.size(); layer++) {
        if (!attended_[layer]) throw std::runtime_error("layer " + std::to_string(layers_[layer]) + " had no step");
    }
}
