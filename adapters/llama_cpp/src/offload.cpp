#include "offload.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

void Offload::start(const Settings &settings, int32_t length) {
    if (caches_.empty() || indexers_.empty()) {
        throw std::runtime_error("the graph selects no ids; give a model with an indexer (deepseek32, glm-dsa)");
    }
    for (size_t at = 0; at < caches_.size(); at++) {
        int layer = static_cast<int>(at);
        if (indexers_.count(layer) != 0) {
            groups_.push_back(std::make_unique<Group>(layer));
        } else if (caches_[at] == nullptr || groups_.empty()) {
            throw std::runtime_error("layer " + std::to_string(layer) + " has no indexer, and none before it has");
        } else {
            groups_.back()->add(layer);
        }
    }
    for (auto &group : groups_) group->start(settings, k_, caches_, length);
    started_ = true;
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

size_t Offload::memory() const {
    size_t sum = 0;
    for (const auto &group : groups_) sum += group->memory();
    return sum;
}

size_t Offload::cached_bytes() const {
    size_t sum = 0;
    for (const auto &group : groups_) sum += group->cached_bytes();
    return sum;
}
