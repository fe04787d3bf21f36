// One model of llama.cpp and the contexts that decode it.
#pragma once

#include "hook.hpp"

#include <llama.h>

#include <memory>
#include <string>
#include <vector>

using Model = std::unique_ptr<llama_model, void (*)(llama_model *)>;

// Loads a model. `k` replaces the number of ids that its indexers select; 0 keeps the file's.
Model load_model(const std::string &path, uint32_t k);

// Returns the tokens of a text file, or the ids that it lists if `ids` is set. A text that is the `first` one begins with the
// token that the model has for a beginning.
std::vector<llama_token> read_tokens(const llama_model *model, const std::string &path, bool ids, bool first = true);

// A context with one sequence, whose token n has the KV row n.
class Decoder {
  public:
    // `observer` sees every decode and may be null.
    Decoder(llama_model *model, uint32_t context, int threads, Observer *observer);

    // Decodes the prompt in large batches, and makes the logits of its last token.
    void prefill(const std::vector<llama_token> &prompt);

    // Takes over the tokens of another context of the same model and length.
    void adopt(const Decoder &other);

    // Decodes one batch. The logits of all its tokens can be read afterwards.
    void decode(const llama_token *tokens, size_t count);

    // Removes the tokens from `length` on.
    void trim(llama_pos length);

    // The state of the sequence, as llama.cpp writes it.
    std::vector<uint8_t> state() const;

    // Takes the `length` tokens of a state in the place of its own.
    void restore(const uint8_t *state, size_t bytes, llama_pos length);

    // Writes the state and its tokens to a file of llama.cpp, which is durable afterwards, and reads one.
    void save(const std::string &path, const std::vector<llama_token> &tokens) const;
    std::vector<llama_token> load(const std::string &path);

    // The logits of a token of the last batch.
    const float *logits(int token) const;

    llama_pos length() const { return length_; }

  private:
    void run(const llama_token *tokens, size_t count, bool every_logit);
    void hold(llama_pos length);

    std::unique_ptr<llama_context, void (*)(llama_context *)> context_;
    Observer *observer_;
    llama_pos length_ = 0;
};
