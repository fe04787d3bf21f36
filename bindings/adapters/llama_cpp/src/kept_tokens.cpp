#include "kept_tokens.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace {

constexpr uint64_t MAGIC = 0x31534E4B54475341;
constexpr size_t PLACE = 4096;  // bytes of each of the two places, so that a torn write spoils one of them

[[noreturn]] void fail(const std::string &what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

}  // namespace

uint64_t KeptTokens::Head::sum() const {
    uint64_t sum = 14695981039346656037u;
    for (uint64_t word : {magic, commits, length, token_bytes, context, model}) sum = (sum ^ word) * 1099511628211u;
    return sum ^ sum >> 32;
}

KeptTokens::KeptTokens(const std::string &path) : path_(path) {
    file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file_ < 0) fail(path);
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) fail(path + " is in use");
    for (size_t place = 0; place < 2; place++) {
        Head head;
        if (pread(file_, &head, sizeof head, static_cast<off_t>(place * PLACE)) != sizeof head) continue;
        if (head.magic == MAGIC && head.checksum == head.sum() && head.commits > head_.commits) head_ = head;
    }
}

KeptTokens::~KeptTokens() { close(file_); }

std::vector<uint8_t> KeptTokens::read(size_t token_bytes) const {
    if (token_bytes != head_.token_bytes) {
        throw std::runtime_error(path_ + " has " + std::to_string(head_.token_bytes) + " bytes for each token, and the model " +
                                 std::to_string(token_bytes) + "; give the session's model");
    }
    std::vector<uint8_t> tokens(head_.length * token_bytes);
    for (size_t at = 0; at < tokens.size();) {
        ssize_t bytes = pread(file_, &tokens[at], tokens.size() - at, static_cast<off_t>(2 * PLACE + at));
        if (bytes <= 0) fail(path_ + " ends before its last token");
        at += static_cast<size_t>(bytes);
    }
    return tokens;
}

void KeptTokens::commit(const std::vector<uint8_t> &tokens, size_t token_bytes, size_t context, uint64_t model) {
    off_t end = static_cast<off_t>(2 * PLACE + head_.length * token_bytes);
    for (size_t at = 0; at < tokens.size();) {
        ssize_t bytes = pwrite(file_, &tokens[at], tokens.size() - at, end + static_cast<off_t>(at));
        if (bytes < 0) fail(path_);
        at += static_cast<size_t>(bytes);
    }
    if (fdatasync(file_) != 0) fail(path_);
    Head head{MAGIC, head_.commits + 1, head_.length + tokens.size() / token_bytes, token_bytes, context, model, 0};
    head.checksum = head.sum();
    off_t place = static_cast<off_t>(head.commits % 2 * PLACE);
    if (pwrite(file_, &head, sizeof head, place) != sizeof head || fdatasync(file_) != 0) fail(path_);
    head_ = head;
}
