// A state that makes llama.cpp hold tokens it has not computed.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

// The state of one sequence as llama_state_seq_get_data writes it: token n has position n.
struct SequenceState {
    std::unique_ptr<uint8_t, decltype(&std::free)> bytes{nullptr, std::free};
    size_t size = 0;
    std::vector<uint8_t *> rows, keys;  // of each layer that has them, one token after another
};

// Makes the state of `length` tokens whose latent rows and indexer keys are zero. `rows` and `keys` are the cache's tensors
// in the order of layers. `sample` is the state of a context that has computed one token; what this function would make of
// this token must be equal to it in every byte, or the format is not known and std::runtime_error is thrown.
SequenceState make_state(const std::vector<uint8_t> &sample, const std::vector<ggml_tensor *> &rows,
                         const std::vector<ggml_tensor *> &keys, size_t length);
