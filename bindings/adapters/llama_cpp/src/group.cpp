#include "group.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>

namespace {

// The arrays of a batch with one request.
struct OneRequest {
    std::vector<int32_t> cu_q, state{0}, generation, stable_len, seq_len;
    avsg_batch batch = avsg::init<avsg_batch>();

    OneRequest(const std::vector<int32_t> &ids, int32_t rows, int32_t number, int32_t stable, int32_t length)
        : cu_q{0, rows}, generation{number}, stable_len{stable}, seq_len{length} {
        batch.ids = avsg::ints(ids);
        batch.k = batch.ids_stride = ids.size() / static_cast<size_t>(rows);
        batch.cu_q = avsg::ints(cu_q);
        batch.state = avsg::ints(state);
        batch.generation = avsg::ints(generation);
        batch.stable_len = avsg::ints(stable_len);
        batch.seq_len = avsg::ints(seq_len);
    }
};

// Every byte 255 is a NaN in each float format, so that one row read too many spoils the logits.
constexpr int POISON = 0xFF;

// Rows of a layer that are written to the pool at a time.
constexpr size_t PROMPT_ROWS = 1024;

uint8_t *row_of(ggml_tensor *cache, size_t cell) { return static_cast<uint8_t *>(cache->data) + cell * cache->nb[1]; }

}  // namespace

bool Group::has(int layer) const { return std::find(layers_.begin(), layers_.end(), layer) != layers_.end(); }

size_t Group::index_of(int layer) const {
    return static_cast<size_t>(std::find(layers_.begin(), layers_.end(), layer) - layers_.begin());
}

void Group::start(const Settings &settings, Avsg &avsg, size_t indexer, const std::vector<ggml_tensor *> &caches, int32_t length) {
    settings_ = settings;
    avsg_ = &avsg;
    indexer_ = indexer;
    for (int layer : layers_) caches_.push_back(caches[static_cast<size_t>(layer)]);
    row_bytes_ = caches_[0]->nb[1];
    fresh_.resize(layers_.size());
    attended_.assign(layers_.size(), true);
    if (settings.mapped) {
        size_t share = avsg.memory * layers_.size() / caches.size();
        mapped_.emplace(settings.disk, layers_.size(), settings.context, row_bytes_, share);
    } else {
        plan_.emplace(*avsg.engine, settings.tokens, 1);
        out_ = plan_->arrays();
        occupant_.assign(settings.slots, -1);
    }
    take_prompt(static_cast<size_t>(settings.kept), static_cast<size_t>(length));
    // The rows of a session that was opened are zero in the caches, and all others are taken out.
    if (settings.kept > 0) return;
    for (ggml_tensor *cache : caches_) std::memset(cache->data, POISON, ggml_nbytes(cache));
}

void Group::take_prompt(size_t first, size_t end) {
    if (mapped_) {
        for (size_t id = first; id < end; id++) {
            for (size_t layer = 0; layer < layers_.size(); layer++) mapped_->write(layer, id, row_of(caches_[layer], id));
        }
        return mapped_->end_step();
    }
    const std::vector<size_t> layers(layers_.begin(), layers_.end());
    std::vector<uint8_t> rows;
    for (size_t count; first < end; first += count) {
        count = std::min(PROMPT_ROWS, end - first);
        rows.clear();
        for (ggml_tensor *cache : caches_) rows.insert(rows.end(), row_of(cache, first), row_of(cache, first + count));
        avsg_->pool->write_rows(layers, first, rows);
    }
}

void Group::begin(int32_t stable) {
    stable_ = stable;
    step_++;
    shown_.clear();
    std::copy_if(ids_.begin(), ids_.end(), std::back_inserter(shown_), [](int32_t id) { return id >= 0; });
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
    if (mapped_) {
        Lap lap(times.copy);
        return mapped_->prefetch(ids_);
    }
    bool missed = settings_.fault == Fault::MissedInvalidation;
    OneRequest request(ids_, drawn_, settings_.every_row ? step_ : 1, missed ? -1 : stable_, stable_ + drawn_);
    request.batch.indexer = indexer_;
    {
        Lap lap(times.plan);
        avsg_->engine->plan(request.batch, *plan_);
    }
    Lap lap(times.harness);
    count_misses();
}

void Group::count_misses() {
    const auto counters = plan_->counters();
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
            size_t row = static_cast<size_t>(stable_) + g;
            avsg_->pool->write_row(pool_layer(layer), row, {&fresh_[layer][g * row_bytes_], row_bytes_});
        }
    }
    {
        Lap lap(times.copy);
        const auto fresh = avsg::fresh(fresh_[layer]);
        if (mapped_) read_mapped(layer);
        if (plan_) avsg_->engine->transfer(*plan_, pool_layer(layer), fresh);
    }
    put_back(layer);
    append(layer);
    attended_[layer] = true;
}

void Group::read_mapped(size_t layer) {
    for (size_t g = 0; g < static_cast<size_t>(drawn_); g++) {
        mapped_->write(layer, static_cast<size_t>(stable_) + g, &fresh_[layer][g * row_bytes_]);
    }
    mapped_->read(layer, ids_, gathered_);
    for (int32_t id : ids_) {
        counts.selected += id >= 0;
        counts.missed += id >= 0;
    }
}

const uint8_t *Group::held(size_t layer, size_t at) const {
    if (mapped_) return &gathered_[at * row_bytes_];
    size_t k = ids_.size() / static_cast<size_t>(drawn_), row = at / k, i = at % k;
    bool wrong = settings_.fault == Fault::WrongSlot && step_ == settings_.fault_step && at == 3;
    int32_t slot = out_.slot[row * out_.k + (wrong ? i + 1 : i)];
    if (slot < 0) throw std::runtime_error("id " + std::to_string(ids_[at]) + " has no slot");
    const auto buffer = avsg_->engine->buffer(pool_layer(layer), 0);
    return static_cast<const uint8_t *>(buffer.base) + static_cast<size_t>(slot) * buffer.slot_stride;
}

void Group::put_back(size_t layer) {
    Lap lap(times.harness);
    ggml_tensor *cache = caches_[layer];
    // The cache has only what this function put there in the last step, and the step's own rows.
    for (int32_t id : shown_) std::memset(row_of(cache, static_cast<size_t>(id)), POISON, row_bytes_);
    std::memset(row_of(cache, static_cast<size_t>(stable_)), POISON, static_cast<size_t>(drawn_) * row_bytes_);
    for (size_t at = 0; at < ids_.size(); at++) {
        if (ids_[at] >= 0) std::memcpy(row_of(cache, static_cast<size_t>(ids_[at])), held(layer, at), row_bytes_);
    }
}

void Group::append(size_t layer) {
    if (mapped_ || settings_.fault == Fault::MissedInvalidation) return;
    if (settings_.fault == Fault::StaleRow && step_ == settings_.fault_step) return;
    Lap lap(times.copy);
    OneRequest request(ids_, drawn_, settings_.every_row ? step_ : 1, stable_, stable_ + drawn_);
    request.batch.indexer = indexer_;
    avsg_->engine->append(request.batch, pool_layer(layer), avsg::fresh(fresh_[layer]));
}

void Group::finish() {
    for (size_t layer = 0; layer < layers_.size(); layer++) {
        if (!attended_[layer]) throw std::runtime_error("layer " + std::to_string(layers_[layer]) + " had no step");
    }
    if (mapped_) mapped_->end_step();
}
