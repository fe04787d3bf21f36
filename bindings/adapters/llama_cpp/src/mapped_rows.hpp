// KV rows in a mapped file, whose pages in the page cache have a limit: what a program without AVSG does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The rows of layers that share an indexer, those of one id side by side, in a file without a name.
class MappedRows {
  public:
    // `memory` is the most bytes that the file has in the page cache after a step.
    MappedRows(const std::string &folder, size_t layers, size_t rows, size_t row_bytes, size_t memory);
    ~MappedRows();
    MappedRows(const MappedRows &) = delete;
    MappedRows &operator=(const MappedRows &) = delete;

    void write(size_t layer, size_t row, const uint8_t *bytes);

    // Asks the kernel for the pages of the rows of `ids` in all layers. Negative ids are passed over.
    void prefetch(const std::vector<int32_t> &ids);

    // Copies a layer's row of each id to its place in `to`.
    void read(size_t layer, const std::vector<int32_t> &ids, std::vector<uint8_t> &to) const;

    // Writes changed pages, and takes the pages that were used least recently out of the page cache.
    void end_step();

    // The bytes that the file has in the page cache, as the kernel says.
    size_t cached_bytes() const;

  private:
    size_t at(size_t layer, size_t row) const { return (row * layers_ + layer) * row_bytes_; }
    void use(size_t first, size_t end);
    void drop(size_t page);

    size_t layers_, row_bytes_, length_, limit_;
    int file_ = -1, process_ = -1;
    uint8_t *map_ = nullptr;
    int step_ = 1;
    std::vector<int> used_;  // the last step that used each page; 0: the page is not in the page cache
};
