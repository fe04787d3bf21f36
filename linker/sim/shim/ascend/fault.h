// A broken rule is reported by an exception with one line of text. It is thrown in the core that
// broke the rule, and the launcher turns it into a return code.
#pragma once

#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>

// Declares a function that returns a static variable of the model. Its visibility is hidden,
// because two kernel libraries in one process must not share the variable, and g++ would otherwise
// make it unique in the process.
#define AVSG_SHIM_STATE __attribute__((visibility("hidden"))) inline

namespace AscendC::shim {

// The line of the kernel's source that contains a call. The default argument `SourceLine()` is
// evaluated at the caller's line; an aggregate in braces would name the line of the header.
struct SourceLine {
    const char *file;
    int line;
    explicit constexpr SourceLine(const char *f = __builtin_FILE(), int l = __builtin_LINE()) : file(f), line(l) {}
};

#define AVSG_SHIM_SITE ::AscendC::shim::SourceLine at = ::AscendC::shim::SourceLine()

// The name and the source line of an instruction, for messages.
struct CallSite {
    const char *op;
    SourceLine at = SourceLine(nullptr, 0);
};

struct Fault {
    std::string text;
    bool hang;
    // Whether the core stopped only because another core failed.
    bool secondary;
};

template <class... A> std::string cat(const A &...a) {
    std::ostringstream s;
    (s << ... << a);
    return s.str();
}

inline std::string hex(uint64_t v) { return cat("0x", std::hex, v); }

inline std::string where(const CallSite &x) {
    if (!x.at.file) return x.op;
    const char *slash = std::strrchr(x.at.file, '/');
    return cat(x.op, " at ", slash ? slash + 1 : x.at.file, ":", x.at.line);
}

template <class... A> [[noreturn]] void fail(const char *rule, const CallSite &x, const A &...a) {
    throw Fault{cat(rule, ": ", where(x), ": ", a...), false, false};
}

template <class... A> [[noreturn]] void hang(const CallSite &x, const A &...a) {
    throw Fault{cat("hang: ", where(x), ": ", a...), true, false};
}

} // namespace AscendC::shim
