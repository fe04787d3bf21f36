// What the kernel counts for this process.
#pragma once

#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>

// Returns the bytes of a counter of /proc/self/io: "read_bytes" from devices, which leaves out reads from the page cache, or
// "write_bytes" to devices, which has bytes that are in the page cache and not yet written.
inline size_t kernel_bytes(const std::string &counter) {
    std::ifstream file("/proc/self/io");
    std::string name;
    for (size_t bytes; file >> name >> bytes;) {
        if (name == counter + ":") return bytes;
    }
    throw std::runtime_error("/proc/self/io has no " + counter + ", so that this kernel cannot count what the disk does");
}
