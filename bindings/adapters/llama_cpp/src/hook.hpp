// What a decode of llama.cpp does to its KV cache, seen through the public callback `cb_eval`.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <string>
#include <vector>

// The rows that a batch has just written to the latent KV cache of one layer.
struct RowsWritten {
    int layer;
    ggml_tensor *cache;          // all rows of the layer: ne[1] rows, nb[1] bytes apart
    std::vector<int64_t> cells;  // the index of each token's row in `cache`
};

// The ids that the indexer of one layer has just selected, before attention reads a row.
struct IdsSelected {
    int layer;
    const ggml_tensor *ids;     // int32 [K, tokens]
    const ggml_tensor *scores;  // float32 [cells, tokens]; -INFINITY for cells that a token cannot see
};

// Receives what happens in a decode. A function that finds a mistake throws std::runtime_error.
class Observer {
  public:
    virtual ~Observer() = default;
    virtual void rows_written(const RowsWritten &rows) = 0;
    virtual void ids_selected(const IdsSelected &selected) = 0;

    // Names the tensor that has the indexer's keys of one layer, before each decode: ne[1] keys, nb[1] bytes apart.
    virtual void keys_are_in(int, ggml_tensor *) {}

    // The first mistake of a decode, or empty. No exception may cross llama.cpp, so that it is kept here.
    std::string mistake;
};

// The callback for `llama_context_params.cb_eval`; its user data is an `Observer`.
bool observe(ggml_tensor *node, bool ask, void *observer);
