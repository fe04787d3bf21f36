#include "npz.hpp"

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace {

using Bytes = std::string;

// Adds a number in little-endian order.
void put(Bytes &to, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

uint32_t crc32(const Bytes &data) {
    uint32_t crc = 0xFFFFFFFFu;
    for (unsigned char byte : data) {
        crc ^= byte;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

// Returns the bytes of an .npy file of version 1.0.
Bytes npy(const Array &array) {
    std::string shape;
    for (size_t n : array.shape) shape += std::to_string(n) + ",";
    Bytes header = "{'descr': '<i4', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    Bytes file("\x93NUMPY\x01\x00", 8);
    put(file, static_cast<uint32_t>(header.size()), 2);
    file += header;
    for (int32_t value : array.data) put(file, static_cast<uint32_t>(value), 4);
    return file;
}

// Adds the fields that a file's local header and its entry in the directory have in common.
void put_common(Bytes &to, const Bytes &data, uint32_t crc, size_t name) {
    put(to, 20, 2);          // version 2.0 is needed
    put(to, 0, 4);           // no flags, no compression
    put(to, 0x00210000, 4);  // the first of January 1980, so that equal traces are equal files
    put(to, crc, 4);
    put(to, static_cast<uint32_t>(data.size()), 4);
    put(to, static_cast<uint32_t>(data.size()), 4);
    put(to, static_cast<uint32_t>(name), 2);
    put(to, 0, 2);
}

}  // namespace

void write_npz(const std::string &path, const std::vector<Array> &arrays) {
    Bytes files, directory;
    for (const Array &array : arrays) {
        Bytes data = npy(array), name = array.name + ".npy";
        uint32_t crc = crc32(data), at = static_cast<uint32_t>(files.size());
        if (files.size() + data.size() > 0xF0000000u) throw std::runtime_error("the trace is over 4 GiB; record fewer steps");
        files += "PK\x03\x04";
        put_common(files, data, crc, name.size());
        files += name + data;
        directory += "PK\x01\x02";
        put(directory, 20, 2);
        put_common(directory, data, crc, name.size());
        put(directory, 0, 4);  // no comment, first disk
        put(directory, 0, 2);
        put(directory, 0, 4);
        put(directory, at, 4);
        directory += name;
    }
    Bytes end = "PK\x05\x06";
    put(end, 0, 4);
    put(end, static_cast<uint32_t>(arrays.size()), 2);
    put(end, static_cast<uint32_t>(arrays.size()), 2);
    put(end, static_cast<uint32_t>(directory.size()), 4);
    put(end, static_cast<uint32_t>(files.size()), 4);
    put(end, 0, 2);
    std::ofstream out(path, std::ios::binary);
    out << files << directory << end;
    if (!out.flush()) throw std::runtime_error(path + " cannot be written");
}
