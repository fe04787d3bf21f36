// Writes int32 arrays to an .npz: a zip archive of .npy files, stored without compression.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Array {
    std::string name;
    std::vector<size_t> shape;
    std::vector<int32_t> data;
};

// Writes the file at once. The archive must be smaller than 4 GiB.
void write_npz(const std::string &path, const std::vector<Array> &arrays);
