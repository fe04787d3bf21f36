#include "offload.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace {

// Bytes of the queue of writes. A decode step writes few rows, and a mapped file gets this memory, too.
constexpr size_t QUEUE_BYTES = 1 << 18;

}  // namespace

void Offload::open(const std::string &path) {
    auto file = avsg::init<avsg_pool_file>();
    file.path = path.c_str();
    file.queue_bytes = QUEUE_BYTES;
    avsg_.pool.emplace(avsg::Pool::open(file));
}

void Offload::start(const Settings &settings, int32_t length) {
    k_ = std::max(k_, settings.k);
    if (caches_.empty() || indexers_.empty()) {
        throw std::runtime_error("the graph selects no ids; give a model with an indexer (deepseek32, glm-dsa)");
    }
    std::vector<uint32_t> indexer_of;
    for (size_t at = 0; at < caches_.size(); at++) {
        int layer = static_cast<int>(at);
        if (indexers_.count(layer) != 0) {
            groups_.push_back(std::make_unique<Group>(layer));
        } else if (caches_[at] == nullptr || groups_.empty()) {
            throw std::runtime_error("layer " + std::to_string(layer) + " has no indexer, and none before it has");
        } else {
            groups_.back()->add(layer);
        }
        indexer_of.push_back(static_cast<uint32_t>(groups_.size() - 1));
    }
    make_avsg(settings, indexer_of);
    for (size_t at = 0; at < groups_.size(); at++) groups_[at]->start(settings, avsg_, at, caches_, length);
    started_ = true;
}

void Offload::make_avsg(const Settings &settings, const std::vector<uint32_t> &indexer_of) {
    auto file = avsg::init<avsg_pool_file>();
    file.path = settings.disk.c_str();
    if (settings.token_bytes > 0) {
        file.keep = 1;
        file.sessions = 1;
        file.session_rows = settings.context;  // a session is one block, so that token n has row n
        file.session_bytes = sizeof(uint64_t);  // a number for the model
        file.token_bytes = settings.token_bytes;
    }
    file.queue_bytes = QUEUE_BYTES;
    file.layer_indexer = indexer_of.data();
    file.layer_indexers = indexer_of.size();
    auto pool = avsg::init<avsg_pool_config>();
    pool.layers = caches_.size();
    pool.rows = settings.context;
    pool.segments = 1;
    pool.segment_bytes[0] = caches_[0]->nb[1];
    if (!settings.disk.empty()) pool.file = &file;
    auto engine = avsg::init<avsg_engine_config>();
    engine.k = k_;
    engine.tokens = settings.tokens;
    engine.slots = settings.slots;
    engine.states = engine.cores = 1;
    engine.layer_indexer = indexer_of.data();
    engine.layer_indexers = indexer_of.size();
    const auto memory = avsg::memory(&engine, pool, settings.tokens, 1);
    avsg_.memory = (settings.disk.empty() ? 0 : memory.pool) + memory.engine_host + groups_.size() * memory.plan_host;
    if (settings.mapped) return;
    if (!avsg_.pool) avsg_.pool.emplace(pool);
    avsg_.engine.emplace(engine, *avsg_.pool);
}

void Offload::begin(int32_t stable) {
    for (auto &group : groups_) group->begin(stable);
}

void Offload::finish() {
    for (auto &group : groups_) group->finish();
}

Group &Offload::group_of(int layer) {
    auto has = [layer](const std::unique_ptr<Group> &group) { return group->has(layer); };
    auto found = std::find_if(groups_.begin(), groups_.end(), has);
    if (found == groups_.end()) throw std::runtime_error("layer " + std::to_string(layer) + " was not in the prompt's graph");
    return **found;
}

void Offload::rows_written(const RowsWritten &rows) {
    if (started_) return group_of(rows.layer).take_fresh(rows);
    caches_.resize(std::max(caches_.size(), static_cast<size_t>(rows.layer) + 1), nullptr);
    caches_[static_cast<size_t>(rows.layer)] = rows.cache;
}

void Offload::ids_selected(const IdsSelected &selected) {
    if (started_) return group_of(selected.layer).select(selected);
    indexers_.insert(selected.layer);
    k_ = std::max(k_, static_cast<uint32_t>(selected.ids->ne[0]));
}

std::vector<ggml_tensor *> Offload::keys() const {
    std::vector<ggml_tensor *> keys;
    for (const auto &[layer, tensor] : keys_) keys.push_back(tensor);
    return keys;
}

Counts Offload::counts() const {
    Counts sum;
    for (const auto &group : groups_) {
        sum.selected += group->counts.selected;
        sum.missed += group->counts.missed;
        sum.evicted += group->counts.evicted;
        sum.invalidated += group->counts.invalidated;
        sum.bytes += group->counts.bytes;
    }
    return sum;
}

Times Offload::times() const {
    Times sum;
    for (const auto &group : groups_) {
        sum.plan += group->times.plan;
        sum.copy += group->times.copy;
        sum.harness += group->times.harness;
    }
    return sum;
}

double Offload::charge(double latency, double bytes_per_second) const {
    double sum = 0;
    for (const auto &group : groups_) {
        double one = latency + static_cast<double>(group->step_bytes()) / bytes_per_second;
        sum += one * static_cast<double>(group->layers());
    }
    return sum;
}

size_t Offload::cached_bytes() const {
    size_t sum = 0;
    for (const auto &group : groups_) sum += group->cached_bytes();
    return sum;
}
