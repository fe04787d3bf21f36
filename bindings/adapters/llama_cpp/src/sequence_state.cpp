#include "sequence_state.hpp"

#include <cstring>
#include <new>
#include <stdexcept>

namespace {

// Bytes before the two caches: a magic number and the sequence's number.
constexpr size_t HEAD = 8;

// Bytes of a cache before its cells, of a cell, between cells and layers, and of a layer before its rows.
constexpr size_t CACHE = 8, CELL = 12, LAYERS = 8, LAYER = 12;

size_t cache_bytes(const std::vector<ggml_tensor *> &layers, size_t length) {
    size_t bytes = CACHE + CELL * length + LAYERS;
    for (const ggml_tensor *layer : layers) bytes += LAYER + length * layer->nb[1];
    return bytes;
}

template <class T>
void put(uint8_t *&at, T value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
}

// Writes all of a cache but its rows, and returns where these are.
std::vector<uint8_t *> put_cache(uint8_t *&at, const std::vector<ggml_tensor *> &layers, size_t length) {
    put<uint32_t>(at, 1);  // one stream
    put(at, static_cast<uint32_t>(length));
    for (size_t n = 0; n < length; n++) {
        put(at, static_cast<int32_t>(n));  // the position
        put<uint32_t>(at, 1);              // in one sequence
        put<int32_t>(at, 0);               // whose number is 0
    }
    put<uint32_t>(at, 0);  // values are not transposed, and the caches have none
    put(at, static_cast<uint32_t>(layers.size()));
    std::vector<uint8_t *> rows;
    for (const ggml_tensor *layer : layers) {
        put(at, static_cast<int32_t>(layer->type));
        put(at, static_cast<uint64_t>(layer->nb[1]));
        rows.push_back(at);
        at += length * layer->nb[1];
    }
    return rows;
}

SequenceState lay_out(const std::vector<uint8_t> &sample, const std::vector<ggml_tensor *> &rows,
                      const std::vector<ggml_tensor *> &keys, size_t length) {
    SequenceState state;
    state.size = HEAD + cache_bytes(rows, length) + cache_bytes(keys, length);
    // The pages of rows stay those of the kernel's zero page.
    state.bytes.reset(static_cast<uint8_t *>(std::calloc(1, state.size)));
    if (!state.bytes) throw std::bad_alloc();
    uint8_t *at = state.bytes.get();
    std::memcpy(at, sample.data(), HEAD);
    at += HEAD;
    state.rows = put_cache(at, rows, length);
    state.keys = put_cache(at, keys, length);
    return state;
}

}  // namespace

SequenceState make_state(const std::vector<uint8_t> &sample, const std::vector<ggml_tensor *> &rows,
                         const std::vector<ggml_tensor *> &keys, size_t length) {
    if (sample.size() != HEAD + cache_bytes(rows, 1) + cache_bytes(keys, 1)) {
        throw std::runtime_error("llama.cpp's state of one token has " + std::to_string(sample.size()) +
                                 " bytes; its format is not known here, so that no session can be opened");
    }
    SequenceState one = lay_out(sample, rows, keys, 1);
    for (size_t i = 0; i < rows.size(); i++) std::memcpy(one.rows[i], rows[i]->data, rows[i]->nb[1]);
    for (size_t i = 0; i < keys.size(); i++) std::memcpy(one.keys[i], keys[i]->data, keys[i]->nb[1]);
    if (std::memcmp(one.bytes.get(), sample.data(), sample.size()) != 0) {
        throw std::runtime_error("llama.cpp's state of one token is not in the format that is known here, so that no session "
                                 "can be opened");
    }
    return lay_out(sample, rows, keys, length);
}
