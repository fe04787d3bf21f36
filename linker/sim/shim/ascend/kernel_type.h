// The type of a kernel, which decides whether its launch starts the scheduler that SyncAll needs.
// KERNEL_TASK_TYPE_DEFAULT sets it. CANN searches the preprocessed text of a file for it and takes one
// type for all kernels of the file. It ignores qualifiers like __vector__, which only the compiler of
// the ASC language knows, so the shim does not define them.
#pragma once

#include "core.h"

extern "C" {
// The types that a library sets. The linker defines these symbols if there is one.
extern const int32_t __start_avsg_shim_types[] __attribute__((weak, visibility("hidden")));
extern const int32_t __stop_avsg_shim_types[] __attribute__((weak, visibility("hidden")));
}

namespace AscendC::shim {

// Sets the type of the kernel that runs. At file scope it does nothing.
struct KernelType {
    explicit KernelType(KernelMetaType type) {
        if (current()) current()->kernel_type = type;
    }
};

// Returns the type that CANN would take for the kernels of this library.
AVSG_SHIM_STATE int32_t file_kernel_type(const char *kernel) {
#ifdef AVSG_SHIM_SEVERAL_FILES
    // The text is several files in one, so that it is compiled faster. Each kernel sets its own type.
    (void)kernel;
    return -1;
#else
    const int32_t *first = __start_avsg_shim_types, *end = __stop_avsg_shim_types;
    if (first == end)
        fail("kernel-type", CallSite{kernel}, "no kernel type is set: set KERNEL_TASK_TYPE_DEFAULT; CANN does not infer the ",
             "type of every kernel");
    for (const int32_t *type = first; type < end; ++type)
        if (*type != *first)
            fail("kernel-type", CallSite{kernel}, "its file sets two kernel types, and CANN takes one of them for all ",
                 "kernels of the file: put the kernels in files of their own");
    return *first;
#endif
}

} // namespace AscendC::shim

#define AVSG_SHIM_JOIN2(a, b) a##b
#define AVSG_SHIM_JOIN(a, b) AVSG_SHIM_JOIN2(a, b)
#define KERNEL_TASK_TYPE_DEFAULT(type)                                                                               \
    [[maybe_unused]] __attribute__((section("avsg_shim_types"), used)) static const int32_t                         \
        AVSG_SHIM_JOIN(avsg_shim_type_, __LINE__) = type;                                                           \
    [[maybe_unused]] const ::AscendC::shim::KernelType AVSG_SHIM_JOIN(avsg_shim_kernel_type_, __LINE__)(type)
