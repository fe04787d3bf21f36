// The layers of one context of llama.cpp with their KV rows behind AVSG.
#pragma once

#include "group.hpp"

#include <map>
#include <memory>
#include <set>
#include <vector>

// During the prompt it learns which layers there are. From `start` on it runs AVSG in every layer.
class Offload : public Observer {
  public:
    // Opens the file of an earlier process, for `start`.
    void open(const std::string &path);

    // Moves the rows of a prompt of `length` tokens to the pool.
    void start(const Settings &settings, int32_t length);

    // The pool, once it is opened or started.
    const avsg::Pool &pool() const { return *avsg_.pool; }

    // Encloses a step whose tokens follow the first `stable` ones.
    void begin(int32_t stable);
    void finish();

    void rows_written(const RowsWritten &rows) override;
    void ids_selected(const IdsSelected &selected) override;
    void keys_are_in(int layer, ggml_tensor *keys) override { keys_[layer] = keys; }

    // llama.cpp's tensors in the order of layers: latent rows of each layer, and keys of each indexer.
    const std::vector<ggml_tensor *> &caches() const { return caches_; }
    std::vector<ggml_tensor *> keys() const;

    Counts counts() const;
    Times times() const;  // of the last step

    // The seconds that the last step's copies take on a link, each layer's by itself.
    double charge(double latency, double bytes_per_second) const;
    size_t memory() const { return avsg_.memory; }
    size_t cached_bytes() const;  // bytes of mapped files in the page cache
    size_t layers() const { return caches_.size(); }
    size_t indexers() const { return groups_.size(); }
    uint32_t k() const { return k_; }

  private:
    Group &group_of(int layer);
    void make_avsg(const Settings &settings, const std::vector<uint32_t> &indexer_of);

    std::vector<ggml_tensor *> caches_;  // of each layer, in the order of layers
    std::set<int> indexers_;             // the layers that select ids
    std::map<int, ggml_tensor *> keys_;  // of the same layers
    Avsg avsg_;
    std::vector<std::unique_ptr<Group>> groups_;
    uint32_t k_ = 0;
    bool started_ = false;
};
