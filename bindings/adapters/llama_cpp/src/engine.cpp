#include "engine.hpp"

#include <fcntl.h>
#include <gguf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace {

// Tokens of a prefill's batch.
constexpr size_t BATCH = 512;

// Returns the architecture that a model file names.
std::string architecture_of(const std::string &path) {
    gguf_init_params params{true, nullptr};
    gguf_context *file = gguf_init_from_file(path.c_str(), params);
    if (file == nullptr) throw std::runtime_error(path + " is not a GGUF file; give a model of llama.cpp");
    int64_t key = gguf_find_key(file, "general.architecture");
    std::string name = key < 0 ? "" : gguf_get_val_str(file, key);
    gguf_free(file);
    return name;
}

}  // namespace

Model load_model(const std::string &path, uint32_t k) {
    llama_model_params params = llama_model_default_params();
    llama_model_kv_override overrides[2] = {};
    std::string key = architecture_of(path) + ".attention.indexer.top_k";
    overrides[0].tag = LLAMA_KV_OVERRIDE_TYPE_INT;
    overrides[0].val_i64 = k;
    std::snprintf(overrides[0].key, sizeof overrides[0].key, "%s", key.c_str());
    if (k > 0) params.kv_overrides = overrides;
    Model model(llama_model_load_from_file(path.c_str(), params), llama_model_free);
    if (!model) throw std::runtime_error("llama.cpp cannot load " + path);
    return model;
}

std::vector<llama_token> read_tokens(const llama_model *model, const std::string &path, bool ids, bool first) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + " cannot be read");
    const llama_vocab *vocab = llama_model_get_vocab(model);
    std::vector<llama_token> tokens;
    if (ids) {
        tokens.assign(std::istream_iterator<llama_token>(file), {});
        if (!file.eof()) throw std::runtime_error(path + " has something that is not an id; list decimal ids");
    } else {
        if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
            throw std::runtime_error("the model has no tokenizer; give token ids and --ids");
        }
        std::string text(std::istreambuf_iterator<char>(file), {});
        auto tokenize = [&] {
            return llama_tokenize(vocab, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                                  static_cast<int32_t>(tokens.size()), first, false);
        };
        // With too little room it returns the number of tokens, negated.
        int count = tokenize();
        if (count < 0) {
            tokens.resize(static_cast<size_t>(-static_cast<int64_t>(count)));
            count = tokenize();
        }
        if (count < 0) throw std::runtime_error("llama.cpp cannot tokenize " + path);
        tokens.resize(static_cast<size_t>(count));
    }
    for (llama_token token : tokens) {
        if (token < 0 || token >= llama_vocab_n_tokens(vocab)) {
            throw std::runtime_error("id " + std::to_string(token) + " of " + path + " is not below the vocabulary's " +
                                     std::to_string(llama_vocab_n_tokens(vocab)));
        }
    }
    return tokens;
}

Decoder::Decoder(llama_model *model, uint32_t context, int threads, Observer *observer)
    : context_(nullptr, llama_free), observer_(observer) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = context;
    params.n_batch = params.n_ubatch = BATCH;
    params.n_threads = params.n_threads_batch = threads;
    // Only flash attention skips a masked row without reading it. Without it a poisoned row is multiplied by 0.
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    if (observer != nullptr) {
        params.cb_eval = observe;
        params.cb_eval_user_data = observer;
    }
    context_.reset(llama_init_from_model(model, params));
    if (!context_) throw std::runtime_error("llama.cpp cannot make a context of " + std::to_string(context) + " tokens");
}

void Decoder::run(const llama_token *tokens, size_t count, bool every_logit) {
    llama_batch batch = llama_batch_init(static_cast<int32_t>(count), 0, 1);
    batch.n_tokens = static_cast<int32_t>(count);
    for (size_t i = 0; i < count; i++) {
        batch.token[i] = tokens[i];
        batch.pos[i] = length_ + static_cast<llama_pos>(i);
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = every_logit || i + 1 == count;
    }
    int status = llama_decode(context_.get(), batch);
    llama_batch_free(batch);
    if (observer_ != nullptr && !observer_->mistake.empty()) throw std::runtime_error(observer_->mistake);
    if (status != 0) throw std::runtime_error("llama_decode returned " + std::to_string(status));
    length_ += static_cast<llama_pos>(count);
}

void Decoder::prefill(const std::vector<llama_token> &prompt) {
    for (size_t at = 0; at < prompt.size(); at += BATCH) {
        run(prompt.data() + at, std::min(BATCH, prompt.size() - at), false);
    }
}

void Decoder::adopt(const Decoder &other) {
    std::vector<uint8_t> state(llama_state_get_size(other.context_.get()));
    size_t size = llama_state_get_data(other.context_.get(), state.data(), state.size());
    if (size == 0 || llama_state_set_data(context_.get(), state.data(), size) != size) {
        throw std::runtime_error("llama.cpp cannot copy the state of a context");
    }
    length_ = other.length_;
}

void Decoder::decode(const llama_token *tokens, size_t count) { run(tokens, count, true); }

void Decoder::trim(llama_pos length) {
    if (length == length_) return;
    if (!llama_memory_seq_rm(llama_get_memory(context_.get()), 0, length, -1)) {
        throw std::runtime_error("llama.cpp cannot remove the tokens from " + std::to_string(length) + " on");
    }
    length_ = length;
}

std::vector<uint8_t> Decoder::state() const {
    std::vector<uint8_t> state(llama_state_seq_get_size(context_.get(), 0));
    state.resize(llama_state_seq_get_data(context_.get(), state.data(), state.size(), 0));
    return state;
}

// Checks that the memory has exactly the tokens of the positions below `length`.
void Decoder::hold(llama_pos length) {
    llama_memory_t memory = llama_get_memory(context_.get());
    if (llama_memory_seq_pos_min(memory, 0) != 0 || llama_memory_seq_pos_max(memory, 0) != length - 1) {
        throw std::runtime_error("llama.cpp does not hold the " + std::to_string(length) + " tokens of the state");
    }
    length_ = length;
}

void Decoder::restore(const uint8_t *state, size_t bytes, llama_pos length) {
    if (llama_state_seq_set_data(context_.get(), state, bytes, 0) != bytes) {
        throw std::runtime_error("llama.cpp does not take a state of " + std::to_string(bytes) + " bytes");
    }
    hold(length);
}

void Decoder::save(const std::string &path, const std::vector<llama_token> &tokens) const {
    std::string part = path + ".part";
    bool saved = llama_state_seq_save_file(context_.get(), part.c_str(), 0, tokens.data(), tokens.size()) > 0;
    int file = saved ? open(part.c_str(), O_RDONLY | O_CLOEXEC) : -1;
    saved = file >= 0 && fsync(file) == 0;
    if (file >= 0) close(file);
    if (!saved || rename(part.c_str(), path.c_str()) != 0) throw std::runtime_error("llama.cpp cannot save its state to " + path);
}

std::vector<llama_token> Decoder::load(const std::string &path) {
    std::vector<llama_token> tokens(llama_n_ctx(context_.get()));
    size_t count = 0;
    if (llama_state_seq_load_file(context_.get(), path.c_str(), 0, tokens.data(), tokens.size(), &count) == 0) {
        throw std::runtime_error("llama.cpp cannot load the state of " + path);
    }
    tokens.resize(count);
    hold(static_cast<llama_pos>(count));
    return tokens;
}

const float *Decoder::logits(int token) const { return llama_get_logits_ith(context_.get(), token); }
