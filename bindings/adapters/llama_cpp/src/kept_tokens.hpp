// What a session keeps of each token beside its rows, in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The same number of bytes for each token. The file's length in tokens is committed last: what a process wrote behind it
// before it was killed is not seen, and written again.
class KeptTokens {
  public:
    // Opens a file, which may have no token yet. Another process cannot open it meanwhile.
    explicit KeptTokens(const std::string &path);
    ~KeptTokens();
    KeptTokens(const KeptTokens &) = delete;
    KeptTokens &operator=(const KeptTokens &) = delete;

    size_t length() const { return head_.length; }
    size_t context() const { return head_.context; }  // the most tokens
    uint64_t model() const { return head_.model; }

    // Reads all tokens, of `token_bytes` each.
    std::vector<uint8_t> read(size_t token_bytes) const;

    // Adds tokens. They are durable when this returns, with the other arguments, which do not change from call to call.
    void commit(const std::vector<uint8_t> &tokens, size_t token_bytes, size_t context, uint64_t model);

  private:
    // One of two places at the start of the file, which are written in turns.
    struct Head {
        uint64_t magic = 0, commits = 0, length = 0, token_bytes = 0, context = 0, model = 0, checksum = 0;
        uint64_t sum() const;
    };

    std::string path_;
    int file_ = -1;
    Head head_;
};
