// Settings that decode the same text: all rows resident, every selected row copied at each step, and AVSG; with rows in a
// file also a mapped file, whose page cache has the memory of AVSG.
#include "commands.hpp"
#include "engine.hpp"
#include "kernel_bytes.hpp"
#include "offload.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>

namespace {

// Seconds that a link takes before the first byte of a layer's copies.
constexpr double LATENCY = 10e-6;

// A random text in which a token repeats the one before it with a probability of 0.9, which makes selections alike, and with
// one of `tenths` / 10 in the prompt.
std::vector<llama_token> alike_text(size_t length, llama_token vocabulary, uint32_t seed, size_t prompt, uint32_t tenths) {
    std::mt19937 random(seed);
    std::vector<llama_token> text{static_cast<llama_token>(random() % static_cast<uint32_t>(vocabulary))};
    while (text.size() < length) {
        llama_token other = static_cast<llama_token>(random() % static_cast<uint32_t>(vocabulary));
        text.push_back(random() % 10 < (text.size() < prompt ? tenths : 9) ? text.back() : other);
    }
    return text;
}

// One way to keep the rows, with its measurements of the current link.
struct Setting {
    const char *name;
    bool every_row = false, mapped = false, disk = false;
    std::unique_ptr<Offload> offload = nullptr;  // null if all rows are resident
    std::unique_ptr<Decoder> decoder = nullptr;
    std::vector<double> tokens = {};  // seconds of each step
    double plan = 0, copy = 0;   // seconds of all steps
    size_t differing = 0, read = 0;  // logits, and bytes from devices
    Counts before = {};

    // Decodes a token, and counts what a server would wait for: not the harness, and the link in the place of the copies.
    void step(llama_token token, double bytes_per_second) {
        if (offload) offload->begin(decoder->length());
        size_t read_before = disk ? kernel_bytes("read_bytes") : 0;
        auto start = std::chrono::steady_clock::now();
        decoder->decode(&token, 1);
        double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (disk) read += kernel_bytes("read_bytes") - read_before;
        if (offload) {
            offload->finish();
            Times times = offload->times();
            double charged = bytes_per_second > 0 ? offload->charge(LATENCY, bytes_per_second) : times.copy;
            seconds += charged - times.copy - times.harness;
            if (every_row) seconds -= times.plan;
            plan += times.plan;
            copy += charged;
        }
        tokens.push_back(seconds);
    }

    // Prints the row of one link, or of the disk, and starts the next.
    void print(const std::string &link) {
        std::sort(tokens.begin(), tokens.end());
        size_t n = tokens.size();
        double sum = 0;
        for (double t : tokens) sum += t;
        std::printf("| %s | %s | %.2f | %.2f |", link.c_str(), name, 1e3 * tokens[n / 2], 1e3 * tokens[std::min(n - 1, n * 95 / 100)]);
        Counts now = offload ? offload->counts() : Counts();
        double planned = every_row ? 0 : plan;
        bool plans = offload && !every_row && !mapped;
        if (plans) std::printf(" %.3f |", 1e3 * plan / static_cast<double>(n));
        if (!plans) std::printf("  |");
        if (offload) std::printf(" %.3f | %.1f %% |", 1e3 * copy / static_cast<double>(n), 100 * (planned + copy) / sum);
        if (!offload) std::printf("  |  |");
        size_t bytes = disk ? read : now.bytes - before.bytes;
        std::printf(" %zu | %.2f | %zu |\n", now.missed - before.missed, static_cast<double>(bytes) / 1e6, differing);
        before = now;
        tokens.clear();
        plan = copy = 0;
        read = 0;
    }
};

}  // namespace

int compare_settings(Arguments arguments) {
    Settings settings;
    settings.slots = static_cast<uint32_t>(arguments.number("--slots", 1024, 64));
    auto k = static_cast<uint32_t>(arguments.number("--k", 256, 1));
    auto prompt = static_cast<size_t>(arguments.number("--prompt", 4096, 2));
    auto steps = static_cast<size_t>(arguments.number("--steps", 64, 1));
    int threads = arguments.number("--threads", 1, 1);
    auto seed = static_cast<uint32_t>(arguments.number("--seed", 1, 0));
    auto prompt_repeat = static_cast<uint32_t>(arguments.number("--prompt-repeat", 9, 0));
    settings.disk = arguments.text("--disk", "");
    arguments.finish();
    if (arguments.names.size() != 1) throw std::runtime_error("settings takes one model; try --help");

    bool disk = !settings.disk.empty();
    std::vector<int> links{0, 25, 50, 100};  // GB/s; 0 is the machine's own memory, or the disk
    if (disk) links = {0};
    size_t length = prompt + steps * links.size();
    settings.context = static_cast<uint32_t>(length);
    Model model = load_model(arguments.names[0], k);
    llama_token vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
    auto text = alike_text(length, vocabulary, seed, prompt, prompt_repeat);
    std::vector<Setting> all(4);
    all[0].name = "all rows resident";
    all[1].name = disk ? "every row read" : "every row copied", all[1].every_row = true;
    all[2].name = "mapped", all[2].mapped = true;
    all[3].name = "AVSG";
    if (!disk) all.erase(all.begin() + 2);
    for (Setting &setting : all) {
        setting.disk = disk;
        if (&setting != &all[0]) setting.offload = std::make_unique<Offload>();
        setting.decoder = std::make_unique<Decoder>(model.get(), settings.context, threads, setting.offload.get());
        // The last token of the prompt shows each observer the layers.
        if (&setting == &all[0]) setting.decoder->prefill({text.begin(), text.begin() + static_cast<std::ptrdiff_t>(prompt) - 1});
        if (setting.offload) setting.decoder->adopt(*all[0].decoder);
    }
    for (Setting &setting : all) {
        settings.every_row = setting.every_row, settings.mapped = setting.mapped;
        setting.decoder->prefill({text[prompt - 1]});
        if (setting.offload) setting.offload->start(settings, setting.decoder->length());
    }
    const Offload &avsg = *all.back().offload;
    std::printf("%zu layers, K = %u, S = %u, N_q = 1, context %zu to %zu, %zu steps for each link; milliseconds per token\n",
                avsg.layers(), avsg.k(), settings.slots, prompt, length, steps);
    std::printf("\n| link | setting | p50 | p95 | plan | copy | share | rows copied | MB %s | logits that differ |\n"
                "|---|---|---|---|---|---|---|---|---|---|\n",
                disk ? "read" : "copied");
    size_t at = prompt;
    for (int link : links) {
        for (size_t n = 0; n < steps; n++, at++) {
            for (Setting &setting : all) {
                setting.step(text[at], link * 1e9);
                const float *expected = all[0].decoder->logits(0), *got = setting.decoder->logits(0);
                for (llama_token i = 0; i < vocabulary; i++) setting.differing += std::memcmp(expected + i, got + i, sizeof *got) != 0;
            }
        }
        std::string name = disk ? "disk" : link > 0 ? std::to_string(link) + " GB/s" : "own memory";
        for (Setting &setting : all) setting.print(name);
    }
    if (disk) {
        std::printf("\nmapped: page cache limited to AVSG's %.2f MB by posix_fadvise after each step; %.2f MB at the end\n",
                    static_cast<double>(avsg.memory()) / 1e6, static_cast<double>(all[2].offload->cached_bytes()) / 1e6);
    }
    return std::all_of(all.begin(), all.end(), [](const Setting &setting) { return setting.differing == 0; }) ? 0 : 1;
}
