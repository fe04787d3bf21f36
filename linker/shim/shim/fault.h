// How a broken rule is reported: an exception that carries one line of text, thrown in the core that
// broke the rule and turned into a return code by the launcher.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>

// Everything of the model has hidden visibility: two kernels loaded into one process must not share
// the model's variables, and g++ would otherwise make inline variables unique in the process.
namespace AscendC {
namespace shim __attribute__((visibility("hidden"))) {

// Where in the kernel's text a call stands.
struct Site {
    const char *file;
    int line;
};

// A default argument: evaluated where the call is written, so it names the kernel's own line.
#define AVSG_SHIM_SITE \
    ::AscendC::shim::Site at = ::AscendC::shim::Site { __builtin_FILE(), __builtin_LINE() }

// What an instruction is called in messages.
struct Ctx {
    const char *op;
    Site at;
};

struct Fault {
    std::string text;
    bool hang;
    // A core that stops because another one failed has nothing of its own to say.
    bool echo;
};

template <class... A> std::string cat(const A &...a) {
    std::ostringstream s;
    (void)std::initializer_list<int>{(s << a, 0)...};
    return s.str();
}

inline std::string hex(uint64_t v) {
    std::ostringstream s;
    s << "0x" << std::hex << v;
    return s.str();
}

inline std::string where(const Ctx &x) {
    std::string file = x.at.file ? x.at.file : "?";
    auto slash = file.rfind('/');
    if (slash != std::string::npos) file = file.substr(slash + 1);
    return cat(x.op, " at ", file, ":", x.at.line);
}

template <class... A> [[noreturn]] void fail(const char *rule, const Ctx &x, const A &...a) {
    throw Fault{cat(rule, ": ", where(x), ": ", a...), false, false};
}

} // namespace shim
} // namespace AscendC
