// Two contexts decode the same text in lockstep, one by llama.cpp alone and one through AVSG.
#include "commands.hpp"
#include "engine.hpp"
#include "offload.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

namespace {

// The tokens of one step: the first follows the text, and the others are drafts.
struct Step {
    std::vector<llama_token> tokens;
    size_t kept;  // how many of them the text has
};

// A random text, and drafts of which two in five are wrong.
class Text {
  public:
    Text(llama_token vocabulary, uint32_t seed) : random_(seed), token_(0, vocabulary - 1), vocabulary_(vocabulary) {}

    std::vector<llama_token> prompt(size_t length) {
        while (text_.size() < length) text_.push_back(token_(random_));
        at_ = length;
        return {text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(length)};
    }

    Step next(size_t tokens) {
        while (text_.size() < at_ + tokens) text_.push_back(token_(random_));
        Step step{{text_[at_]}, 1};
        bool right = true;
        for (size_t g = 1; g < tokens; g++) {
            bool wrong = random_() % 5 < 2;
            right = right && !wrong;
            step.tokens.push_back((text_[at_ + g] + (wrong ? 1 : 0)) % vocabulary_);
            step.kept += right;
        }
        at_ += step.kept;
        return step;
    }

  private:
    std::mt19937 random_;
    std::uniform_int_distribution<llama_token> token_;
    llama_token vocabulary_;
    std::vector<llama_token> text_;
    size_t at_ = 0;
};

// How the logits of two contexts differ.
struct Difference {
    size_t compared = 0, different = 0;
    double largest = 0;
    int first = -1;  // the first step with a difference

    void add(const float *expected, const float *got, size_t count, int step) {
        for (size_t i = 0; i < count; i++) {
            compared++;
            if (std::memcmp(expected + i, got + i, sizeof(float)) == 0) continue;
            if (first < 0) first = step;
            different++;
            double distance = std::fabs(static_cast<double>(expected[i]) - static_cast<double>(got[i]));
            largest = std::isnan(distance) ? INFINITY : std::max(largest, distance);
        }
    }
};

Fault fault_of(const std::string &name) {
    if (name == "none") return Fault::None;
    if (name == "wrong-slot") return Fault::WrongSlot;
    if (name == "stale-row") return Fault::StaleRow;
    if (name == "missed-invalidation") return Fault::MissedInvalidation;
    throw std::runtime_error("--fault is " + name + ", and must be wrong-slot, stale-row or missed-invalidation");
}

}  // namespace

int compare(Arguments arguments) {
    Settings settings;
    settings.slots = static_cast<uint32_t>(arguments.number("--slots", 128, 64));
    settings.tokens = static_cast<uint32_t>(arguments.number("--tokens", 1, 1));
    settings.fault = fault_of(arguments.text("--fault", "none"));
    settings.disk = arguments.text("--disk", "");
    auto k = static_cast<uint32_t>(arguments.number("--k", 0, 0));
    auto prompt = static_cast<uint32_t>(arguments.number("--prompt", 512, 1));
    int steps = arguments.number("--steps", 512, 1), threads = arguments.number("--threads", 1, 1);
    auto seed = static_cast<uint32_t>(arguments.number("--seed", 1, 0));
    arguments.finish();
    if (arguments.names.size() != 1) throw std::runtime_error("compare takes one model; try --help");
    settings.context = prompt + static_cast<uint32_t>(steps) * settings.tokens;

    Model model = load_model(arguments.names[0], k);
    llama_token vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
    Offload offload;
    Decoder alone(model.get(), settings.context, threads, nullptr);
    Decoder through(model.get(), settings.context, threads, &offload);
    Text text(vocabulary, seed);
    auto first = text.prompt(prompt);
    alone.prefill(first);
    through.prefill(first);
    Difference difference;
    difference.add(alone.logits(-1), through.logits(-1), static_cast<size_t>(vocabulary), 0);
    offload.start(settings, through.length());

    size_t rejected = 0;
    for (int n = 1; n <= steps; n++) {
        Step step = text.next(settings.tokens);
        llama_pos stable = through.length();
        offload.begin(stable);
        alone.decode(step.tokens.data(), step.tokens.size());
        through.decode(step.tokens.data(), step.tokens.size());
        offload.finish();
        for (size_t g = 0; g < step.tokens.size(); g++) {
            int token = static_cast<int>(g);
            difference.add(alone.logits(token), through.logits(token), static_cast<size_t>(vocabulary), n);
        }
        rejected += step.tokens.size() - step.kept;
        llama_pos length = stable + static_cast<llama_pos>(step.kept);
        alone.trim(length);
        through.trim(length);
    }

    Counts counts = offload.counts();
    char architecture[64] = "";
    llama_model_meta_val_str(model.get(), "general.architecture", architecture, sizeof architecture);
    std::printf("| %s | %zu | %zu | %u | %u | %u | %u to %d | %d | %zu | %zu | %zu | %zu | %zu | %zu | %g |\n", architecture,
                offload.layers(), offload.indexers(), offload.k(), settings.slots, settings.tokens, prompt, through.length(),
                steps, counts.selected, counts.missed, counts.evicted, rejected, counts.invalidated, difference.compared,
                difference.largest);
    if (difference.different == 0) return 0;
    std::fprintf(stderr, "%zu of %zu logits differ, the first in step %d\n", difference.different, difference.compared,
                 difference.first);
    return 1;
}
