// Records the ids that one indexer selects in each decode step.
#include "commands.hpp"
#include "engine.hpp"
#include "npz.hpp"

#include <algorithm>
#include <cstdio>

namespace {

// Appends the ids of one layer, and those that are ranked next behind them.
class Recorder : public Observer {
  public:
    Recorder(int layer, size_t behind) : layer_(layer), behind_(behind) {}

    // Begins a step that is recorded; `stable` tokens are final before it.
    void begin(int32_t stable) {
        stable_ = stable;
        seen_ = false;
        stables.push_back(stable);
    }

    void rows_written(const RowsWritten &) override {}

    void ids_selected(const IdsSelected &selected) override {
        if (layer_ < 0) layer_ = selected.layer;
        if (selected.layer != layer_ || stables.empty()) return;
        size_t ids = static_cast<size_t>(selected.ids->ne[0]), tokens = static_cast<size_t>(selected.ids->ne[1]);
        if (k == 0) k = ids;
        if (ids != k) {
            throw std::runtime_error("the step selects " + std::to_string(ids) + " ids and an earlier one " + std::to_string(k) +
                                     "; start with a longer prompt, or choose a smaller --k");
        }
        for (size_t g = 0; g < tokens; g++) add(selected, g);
        seen_ = true;
    }

    void finish() const {
        if (!seen_) throw std::runtime_error("layer " + std::to_string(layer_) + " selects no ids; choose a layer with an indexer");
    }

    int layer() const { return layer_; }

    size_t k = 0;
    std::vector<int32_t> ids, next, stables;

  private:
    void add(const IdsSelected &selected, size_t g) {
        auto *row = reinterpret_cast<const int32_t *>(static_cast<const char *>(selected.ids->data) + g * selected.ids->nb[1]);
        auto *score = reinterpret_cast<const float *>(static_cast<const char *>(selected.scores->data) + g * selected.scores->nb[1]);
        size_t visible = static_cast<size_t>(stable_) + g + 1;
        std::vector<bool> taken(static_cast<size_t>(selected.scores->ne[0]));
        for (size_t i = 0; i < k; i++) {
            taken[static_cast<size_t>(row[i])] = true;
            ids.push_back(static_cast<size_t>(row[i]) < visible ? row[i] : -1);
        }
        std::vector<int32_t> rest;
        for (size_t id = 0; id < std::min(visible, taken.size()); id++) {
            if (!taken[id]) rest.push_back(static_cast<int32_t>(id));
        }
        size_t count = std::min(behind_, rest.size());
        std::partial_sort(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count), rest.end(), [score](int32_t a, int32_t b) {
            return score[a] != score[b] ? score[a] > score[b] : a < b;
        });
        rest.resize(count);
        rest.resize(behind_, -1);
        next.insert(next.end(), rest.begin(), rest.end());
    }

    int layer_;
    size_t behind_;
    int32_t stable_ = 0;
    bool seen_ = false;
};

llama_token most_likely(const float *logits, int vocabulary) {
    return static_cast<llama_token>(std::max_element(logits, logits + vocabulary) - logits);
}

}  // namespace

int record(Arguments arguments) {
    bool ids = arguments.flag("--ids");
    auto k = static_cast<uint32_t>(arguments.number("--k", 0, 0));
    auto steps = static_cast<size_t>(arguments.number("--steps", 512, 1));
    auto follow = static_cast<size_t>(arguments.number("--follow", 0, 0));
    auto tokens = static_cast<size_t>(arguments.number("--tokens", 1, 1));
    auto behind = static_cast<size_t>(arguments.number("--behind", 0, 0));
    int layer = arguments.number("--layer", -1, -1), threads = arguments.number("--threads", 1, 1);
    arguments.finish();
    if (arguments.names.size() != 3) throw std::runtime_error("record takes a model, a text and an output; try --help");
    if (follow == 0 && tokens != 1) throw std::runtime_error("--tokens above 1 needs --follow, because nothing drafts tokens here");

    Model model = load_model(arguments.names[0], k);
    int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
    auto text = read_tokens(model.get(), arguments.names[1], ids);
    auto prompt = text;
    if (follow > 0) {
        if (text.size() < follow + tokens) {
            throw std::runtime_error("the text has " + std::to_string(text.size()) + " tokens; --follow must leave at least N_q");
        }
        prompt.resize(follow);
        steps = std::min(steps, (text.size() - follow) / tokens);
    }
    if (prompt.empty()) throw std::runtime_error("the prompt is empty; give at least one token");
    Recorder recorder(layer, behind);
    Decoder decoder(model.get(), static_cast<uint32_t>(prompt.size() + steps * tokens), threads, &recorder);
    decoder.prefill(prompt);
    llama_token token = most_likely(decoder.logits(-1), vocabulary);
    for (size_t step = 0; step < steps; step++) {
        recorder.begin(decoder.length());
        if (follow > 0) {
            decoder.decode(&text[follow + step * tokens], tokens);
        } else {
            decoder.decode(&token, 1);
            token = most_likely(decoder.logits(0), vocabulary);
        }
        recorder.finish();
    }
    std::vector<Array> arrays{{"ids", {steps, tokens, recorder.k}, recorder.ids}, {"stable", {steps}, recorder.stables}};
    if (behind > 0) arrays.push_back({"behind", {steps, tokens, behind}, recorder.next});
    write_npz(arguments.names[2], arrays);
    std::printf("layer %d: %zu steps, N_q = %zu, K = %zu, %zu ids behind them, context %zu to %d\n", recorder.layer(), steps,
                tokens, recorder.k, behind, prompt.size(), decoder.length());
    return 0;
}
