// How a broken rule is reported: an exception that carries one line of text, thrown in the core that
// broke the rule and turned into a return code by the launcher.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>

// A variable of the model, as a function that returns it. Hidden: two kernels loaded into one process
// must not share it, and g++ would otherwise make it unique in the process.
#define AVSG_SHIM_STATE __attribute__((visibility("hidden"))) inline

namespace AscendC {
namespace shim {

// Where in the kernel's text a call stands. As a default argument `Site()` is evaluated where the call
// is written; an aggregate in braces would name the line of the header.
struct Site {
    const char *file;
    int line;
    explicit constexpr Site(const char *f = __builtin_FILE(), int l = __builtin_LINE()) : file(f), line(l) {}
};

#define AVSG_SHIM_SITE ::AscendC::shim::Site at = ::AscendC::shim::Site()

// What an instruction is called in messages.
struct Ctx {
    const char *op;
    Site at = Site(nullptr, 0);
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
    if (!x.at.file) return x.op;
    std::string file = x.at.file;
    auto slash = file.rfind('/');
    if (slash != std::string::npos) file = file.substr(slash + 1);
    return cat(x.op, " at ", file, ":", x.at.line);
}

template <class... A> [[noreturn]] void fail(const char *rule, const Ctx &x, const A &...a) {
    throw Fault{cat(rule, ": ", where(x), ": ", a...), false, false};
}

} // namespace shim
} // namespace AscendC
