// avsg_llama: a DSA model of llama.cpp decodes with its KV rows behind AVSG, or its selections are recorded.
#include "commands.hpp"

#include <avsg.h>
#include <llama.h>

#include <cstdio>
#include <exception>
#include <string>

namespace {

const char *const USAGE =
    "avsg_llama compare MODEL.gguf [--slots S] [--k K] [--tokens N_q] [--prompt TOKENS] [--steps N] [--seed N]\n"
    "                              [--threads N] [--disk FOLDER] [--fault wrong-slot|stale-row|missed-invalidation]\n"
    "  decodes a random text with and without AVSG and compares every logit; exit status 1 if one differs;\n"
    "  --disk: the rows that AVSG copies from are in a file of the folder\n"
    "avsg_llama settings MODEL.gguf [--slots S] [--k K] [--prompt TOKENS] [--steps N] [--seed N] [--threads N]\n"
    "                               [--prompt-repeat TENTHS] [--disk FOLDER]\n"
    "  times a token with all rows resident, with every selected row copied, and with AVSG, also over emulated links;\n"
    "  --prompt-repeat: the probability that a token of the prompt repeats the one before it, in tenths (default 9);\n"
    "  --disk: the rows are in a file of the folder, and one setting more maps it\n"
    "avsg_llama session MODEL.gguf FOLDER TEXT... [--ids] [--keep avsg|state|nothing] [--answer TOKENS] [--context TOKENS]\n"
    "                   [--from STATE] [--logits OUT] [--tokens N_q] [--slots S] [--k K] [--threads N]\n"
    "  computes each text behind the tokens that the folder has, continues it by --answer tokens (default 16), and keeps all\n"
    "  tokens in the folder; the first text makes the session, with room for --context tokens (default 4096). A line is\n"
    "  | tokens before | of the text | of the answer | ms until they are held | ms to the first token | MB read until then |\n"
    "  MB written |.\n"
    "  --keep state: llama.cpp alone, with its own file of the whole state, FOLDER/state.llama; --from: the session begins\n"
    "  with the tokens of such a file; --logits: adds the logits of each step to a file\n"
    "avsg_llama record MODEL.gguf PROMPT.txt OUT.npz [--ids] [--steps N] [--follow PROMPT_TOKENS] [--tokens N_q]\n"
    "                              [--layer N] [--behind N] [--k K] [--threads N]\n"
    "  records the ids that an indexer selects while the model continues the prompt; --ids: the file lists token ids;\n"
    "  --follow: the first tokens of the file are the prompt, and the others are decoded, N_q in each step\n";

// Passes on what llama.cpp reports as an error.
void log_errors(ggml_log_level level, const char *text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

}  // namespace

int main(int argc, char **argv) {
    std::string command = argc > 1 ? argv[1] : "";
    llama_log_set(log_errors, nullptr);
    try {
        if (avsg_abi_version() != AVSG_ABI_VERSION) {
            throw std::runtime_error("libavsg has interface " + std::to_string(avsg_abi_version()) + ", this program " +
                                     std::to_string(AVSG_ABI_VERSION) + "; build it again");
        }
        Arguments arguments(argc - 1, argv + 1, {"--ids"});
        if (command == "compare") return compare(arguments);
        if (command == "record") return record(arguments);
        if (command == "session") return session(arguments);
        if (command == "settings") return compare_settings(arguments);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "avsg_llama: %s\n", e.what());
        return 2;
    }
    std::fputs(USAGE, command == "--help" ? stdout : stderr);
    return command == "--help" ? 0 : 2;
}
