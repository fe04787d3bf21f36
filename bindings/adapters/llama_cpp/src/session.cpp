// A conversation whose tokens outlive the process: each text is computed behind those that were kept.
#include "commands.hpp"
#include "engine.hpp"
#include "kernel_bytes.hpp"
#include "offload.hpp"
#include "sequence_state.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>

namespace {

// Where tokens are between processes.
enum class Keep {
    Avsg,     // in a session of AVSG's file: rows, and of each token the id and the indexers' keys
    State,    // llama.cpp's file of the whole state
    Nothing,  // nowhere
};

Keep keep_of(const std::string &name) {
    if (name == "avsg") return Keep::Avsg;
    if (name == "state") return Keep::State;
    if (name == "nothing") return Keep::Nothing;
    throw std::runtime_error("--keep is " + name + ", and must be avsg, state or nothing");
}

// A number that differs between models of other sizes or names, and with another K.
uint64_t mark_of(const llama_model *model, uint32_t k) {
    char name[256] = "";
    llama_model_desc(model, name, sizeof name);
    uint64_t mark = llama_model_size(model) * 31 + llama_model_n_params(model);
    for (const char *at = name; *at != 0; at++) mark = mark * 31 + static_cast<unsigned char>(*at);
    return mark * 31 + k;
}

// Returns the number of ids that the model's indexers select for a token.
uint32_t selected_ids(const llama_model *model) {
    char architecture[64] = "", k[64] = "";
    llama_model_meta_val_str(model, "general.architecture", architecture, sizeof architecture);
    llama_model_meta_val_str(model, (std::string(architecture) + ".attention.indexer.top_k").c_str(), k, sizeof k);
    return static_cast<uint32_t>(std::strtoul(k, nullptr, 10));
}

class Session {
  public:
    // `from` is a state file of llama.cpp with which the session begins, or empty.
    Session(llama_model *model, Keep keep, const std::string &folder, const std::string &from, const Settings &settings,
            int threads)
        : keep_(keep), folder_(folder), settings_(settings), mark_(mark_of(model, settings.k)) {
        if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
            throw std::runtime_error(folder + ": " + std::strerror(errno));
        }
        settings_.disk = folder + "/rows.avsg";
        if (keep == Keep::Avsg && access(settings_.disk.c_str(), F_OK) == 0) open();
        decoder_.emplace(model, settings_.context, threads, keep == Keep::Avsg ? &offload_ : nullptr);
        if (kept_ > 0) resume();
        if (keep == Keep::State && access(state().c_str(), F_OK) == 0) tokens_ = decoder_->load(state());
        if (from.empty()) return;
        if (!tokens_.empty()) throw std::runtime_error(folder + " has a session; give no --from");
        if (keep == Keep::Avsg) decoder_->prefill({0});  // shows the layers and their tensors
        tokens_ = decoder_->load(from);
    }

    // Computes tokens, at most N_q in a step unless they are the first of all. `logits` gets the logits of each step.
    void add(const std::vector<llama_token> &tokens, std::vector<float> &logits, size_t vocabulary) {
        if (tokens.empty()) throw std::runtime_error("a text has no token; give at least one");
        if (tokens_.size() + tokens.size() > settings_.context) {
            throw std::runtime_error("the session has room for " + std::to_string(settings_.context) + " tokens and would have " +
                                     std::to_string(tokens_.size() + tokens.size()) + "; make another with a larger --context");
        }
        bool first = tokens_.empty();
        if (first) {
            decoder_->prefill(tokens);
            logits.insert(logits.end(), decoder_->logits(-1), decoder_->logits(-1) + vocabulary);
        }
        for (size_t at = 0; !first && at < tokens.size(); at += settings_.tokens) {
            size_t count = std::min<size_t>(settings_.tokens, tokens.size() - at);
            start();
            if (keep_ == Keep::Avsg) offload_.begin(decoder_->length());
            decoder_->decode(&tokens[at], count);
            if (keep_ == Keep::Avsg) offload_.finish();
            for (size_t g = 0; g < count; g++) {
                const float *one = decoder_->logits(static_cast<int>(g));
                logits.insert(logits.end(), one, one + vocabulary);
            }
        }
        tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    }

    // Keeps all tokens so far. They survive the process from here on.
    void commit() {
        if (keep_ == Keep::State) decoder_->save(state(), tokens_);
        if (keep_ != Keep::Avsg) return;
        start();
        std::vector<uint8_t> bytes;
        bytes.reserve((tokens_.size() - kept_) * token_bytes());
        auto add = [&bytes](const void *from, size_t size) {
            auto *at = static_cast<const uint8_t *>(from);
            bytes.insert(bytes.end(), at, at + size);
        };
        for (size_t n = kept_; n < tokens_.size(); n++) {
            add(&tokens_[n], sizeof tokens_[n]);
            for (const ggml_tensor *keys : offload_.keys()) {
                add(static_cast<uint8_t *>(keys->data) + n * keys->nb[1], keys->nb[1]);
            }
        }
        offload_.pool().write_tokens(kept_, bytes);
        auto session = described(mark_);
        session.length = tokens_.size();
        offload_.pool().commit_session(0, session);
        kept_ = tokens_.size();
    }

    size_t length() const { return tokens_.size(); }

  private:
    // Bytes that are kept of a token beside its rows: the id, and a key of each indexer.
    size_t token_bytes() const {
        size_t bytes = sizeof(llama_token);
        for (const ggml_tensor *keys : offload_.keys()) bytes += keys->nb[1];
        return bytes;
    }

    std::string state() const { return folder_ + "/state.llama"; }

    // Moves the rows of the prompt to AVSG, if they are not there.
    void start() {
        if (keep_ != Keep::Avsg || started_) return;
        settings_.token_bytes = token_bytes();
        offload_.start(settings_, decoder_->length());
        started_ = true;
    }

    // The session's block and its data, which is `mark`.
    avsg_session described(uint64_t &mark) {
        auto session = avsg::init<avsg_session>();
        session.blocks = &block_, session.block_count = 1;
        session.data = &mark, session.bytes = sizeof mark;
        return session;
    }

    // Opens the file of an earlier process. It has no token if that process was killed before its first text was kept.
    void open() {
        offload_.open(settings_.disk);
        uint64_t mark = 0;
        auto session = described(mark);
        offload_.pool().get_session(0, session);
        kept_ = session.length;
        settings_.kept = static_cast<int32_t>(kept_);
        settings_.context = static_cast<uint32_t>(offload_.pool().info().rows);
        if (kept_ > 0 && mark != mark_) throw std::runtime_error(folder_ + " has the session of another model or K");
    }

    // Makes llama.cpp hold the tokens that were kept, without their rows.
    void resume() {
        // One token shows the layers, their tensors and the format of a state.
        decoder_->prefill({0});
        if (offload_.pool().info().token_bytes != token_bytes()) {
            throw std::runtime_error(folder_ + " has tokens of " + std::to_string(offload_.pool().info().token_bytes) +
                                     " bytes, and those of the model have " + std::to_string(token_bytes()));
        }
        std::vector<uint8_t> bytes(kept_ * token_bytes());
        offload_.pool().read_tokens(0, bytes);
        tokens_.resize(kept_);
        auto keys = offload_.keys();
        auto held = make_state(decoder_->state(), offload_.caches(), keys, tokens_.size());
        const uint8_t *from = bytes.data();
        for (size_t n = 0; n < tokens_.size(); n++) {
            std::memcpy(&tokens_[n], from, sizeof tokens_[n]);
            from += sizeof tokens_[n];
            for (size_t i = 0; i < keys.size(); i++, from += keys[i - 1]->nb[1]) {
                std::memcpy(held.keys[i] + n * keys[i]->nb[1], from, keys[i]->nb[1]);
            }
        }
        decoder_->restore(held.bytes.get(), held.size, settings_.kept);
        start();
    }

    Keep keep_;
    std::string folder_;
    Settings settings_;
    uint64_t mark_;
    Offload offload_;
    size_t kept_ = 0;  // tokens that are durable
    int32_t block_ = 0;
    std::optional<Decoder> decoder_;
    std::vector<llama_token> tokens_;
    bool started_ = false;
};

}  // namespace

int session(Arguments arguments) {
    using Clock = std::chrono::steady_clock;
    auto start = Clock::now();
    Settings settings;
    bool ids = arguments.flag("--ids");
    settings.slots = static_cast<uint32_t>(arguments.number("--slots", 1024, 64));
    settings.tokens = static_cast<uint32_t>(arguments.number("--tokens", 16, 1));
    settings.context = static_cast<uint32_t>(arguments.number("--context", 4096, 1));
    settings.k = static_cast<uint32_t>(arguments.number("--k", 0, 0));
    int answer = arguments.number("--answer", 16, 0), threads = arguments.number("--threads", 1, 1);
    Keep keep = keep_of(arguments.text("--keep", "avsg"));
    std::string path = arguments.text("--logits", ""), from = arguments.text("--from", "");
    arguments.finish();
    if (arguments.names.size() < 3) throw std::runtime_error("session takes a model, a folder and a text or more; try --help");

    Model model = load_model(arguments.names[0], settings.k);
    if (settings.k == 0) settings.k = selected_ids(model.get());
    auto vocabulary = static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model.get())));
    size_t read = kernel_bytes("read_bytes");
    Session session(model.get(), keep, arguments.names[1], from, settings, threads);
    auto since = [&start] { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); };
    double opened = since();
    for (size_t n = 2; n < arguments.names.size(); n++) {
        size_t before = session.length(), written = kernel_bytes("write_bytes");
        std::vector<float> logits;
        session.add(read_tokens(model.get(), arguments.names[n], ids, before == 0), logits, vocabulary);
        double first = since();
        size_t first_read = kernel_bytes("read_bytes") - read;
        size_t text = session.length() - before;
        for (int i = 0; i < answer; i++) {
            auto last = logits.end() - static_cast<std::ptrdiff_t>(vocabulary);
            session.add({static_cast<llama_token>(std::max_element(last, logits.end()) - last)}, logits, vocabulary);
        }
        session.commit();
        written = kernel_bytes("write_bytes") - written;
        if (!path.empty()) {
            std::ofstream file(path, std::ios::binary | std::ios::app);
            file.write(reinterpret_cast<const char *>(logits.data()), static_cast<std::streamsize>(logits.size() * sizeof(float)));
            if (!file.flush()) throw std::runtime_error(path + " cannot be written");
        }
        std::printf("| %zu | %zu | %d | %.1f | %.1f | %.2f | %.2f |\n", before, text, answer, opened, first,
                    static_cast<double>(first_read) / 1e6, static_cast<double>(written) / 1e6);
        std::fflush(stdout);
        start = Clock::now(), opened = 0;
        read = kernel_bytes("read_bytes");
    }
    return 0;
}
