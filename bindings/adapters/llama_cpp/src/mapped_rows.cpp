#include "mapped_rows.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace {

constexpr size_t PAGE = 4096;

// The most ranges that one call of process_madvise takes.
constexpr size_t MOST_RANGES = 1024;

[[noreturn]] void fail(const std::string &what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

}  // namespace

MappedRows::MappedRows(const std::string &folder, size_t layers, size_t rows, size_t row_bytes, size_t memory)
    : layers_(layers), row_bytes_(row_bytes), length_((rows * layers * row_bytes + PAGE - 1) / PAGE * PAGE), limit_(memory / PAGE) {
    file_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file_ < 0) fail("a file without a name in " + folder);
    errno = posix_fallocate(file_, 0, static_cast<off_t>(length_));
    if (errno != 0) fail(std::to_string(length_) + " bytes in " + folder);
    void *map = mmap(nullptr, length_, PROT_READ, MAP_SHARED, file_, 0);
    if (map == MAP_FAILED) fail("mmap");
    map_ = static_cast<uint8_t *>(map);
    if (madvise(map_, length_, MADV_RANDOM) != 0) fail("MADV_RANDOM");
    process_ = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    if (process_ < 0) fail("pidfd_open");
    used_.assign(length_ / PAGE, 0);
}

MappedRows::~MappedRows() {
    if (map_ != nullptr) munmap(map_, length_);
    if (process_ >= 0) close(process_);
    if (file_ >= 0) close(file_);
}

void MappedRows::use(size_t first, size_t end) {
    for (size_t page = first / PAGE; page * PAGE < end; page++) used_[page] = step_;
}

void MappedRows::write(size_t layer, size_t row, const uint8_t *bytes) {
    auto written = pwrite(file_, bytes, row_bytes_, static_cast<off_t>(at(layer, row)));
    if (written != static_cast<ssize_t>(row_bytes_)) fail("row " + std::to_string(row) + " is not written");
    use(at(layer, row), at(layer, row) + row_bytes_);
}

void MappedRows::prefetch(const std::vector<int32_t> &ids) {
    std::vector<size_t> pages;
    for (int32_t id : ids) {
        if (id < 0) continue;
        size_t first = at(0, static_cast<size_t>(id)), end = first + layers_ * row_bytes_;
        for (size_t page = first / PAGE; page * PAGE < end; page++) pages.push_back(page);
        use(first, end);
    }
    std::sort(pages.begin(), pages.end());
    std::vector<iovec> ranges;
    for (size_t page : pages) {
        uint8_t *start = map_ + page * PAGE;
        uint8_t *end = ranges.empty() ? nullptr : static_cast<uint8_t *>(ranges.back().iov_base) + ranges.back().iov_len;
        if (end == start) ranges.back().iov_len += PAGE;
        if (end == nullptr || end < start) ranges.push_back({start, PAGE});
    }
    for (size_t first = 0; first < ranges.size(); first += MOST_RANGES) {
        size_t count = std::min(MOST_RANGES, ranges.size() - first);
        if (syscall(SYS_process_madvise, process_, &ranges[first], count, MADV_WILLNEED, 0) < 0) fail("process_madvise");
    }
}

void MappedRows::read(size_t layer, const std::vector<int32_t> &ids, std::vector<uint8_t> &to) const {
    to.resize(ids.size() * row_bytes_);
    for (size_t i = 0; i < ids.size(); i++) {
        if (ids[i] >= 0) std::memcpy(&to[i * row_bytes_], map_ + at(layer, static_cast<size_t>(ids[i])), row_bytes_);
    }
}

void MappedRows::drop(size_t page) {
    // The kernel keeps a page that is mapped.
    if (madvise(map_ + page * PAGE, PAGE, MADV_DONTNEED) != 0) fail("MADV_DONTNEED");
    errno = posix_fadvise(file_, static_cast<off_t>(page * PAGE), PAGE, POSIX_FADV_DONTNEED);
    if (errno != 0) fail("POSIX_FADV_DONTNEED");
    used_[page] = 0;
}

void MappedRows::end_step() {
    // The kernel keeps a page that is not written yet.
    if (fdatasync(file_) != 0) fail("fdatasync");
    std::vector<size_t> pages(used_.size());
    std::iota(pages.begin(), pages.end(), size_t{0});
    auto cached = std::partition(pages.begin(), pages.end(), [this](size_t page) { return used_[page] > 0; });
    pages.erase(cached, pages.end());
    std::sort(pages.begin(), pages.end(), [this](size_t a, size_t b) { return used_[a] > used_[b]; });
    for (size_t i = limit_; i < pages.size(); i++) drop(pages[i]);
    step_++;
}

size_t MappedRows::cached_bytes() const {
    std::vector<unsigned char> cached(used_.size());
    if (mincore(map_, length_, cached.data()) != 0) fail("mincore");
    return PAGE * static_cast<size_t>(std::count_if(cached.begin(), cached.end(), [](unsigned char page) { return page & 1; }));
}
