// A fake of CANN's tiling data macros for fields of type int32_t, which are consecutive words.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

class TilingDef {
public:
    size_t GetDataSize() const { return words_.size() * 4; }
    void SaveToBuffer(void *to, size_t capacity) const
    {
        if (capacity >= GetDataSize()) {
            std::memcpy(to, words_.data(), GetDataSize());
        }
    }

protected:
    size_t Take(size_t n)
    {
        words_.resize(words_.size() + n);
        return words_.size() - n;
    }
    std::vector<int32_t> words_;
};

#define BEGIN_TILING_DATA_DEF(name) class name : public TilingDef { public:
#define TILING_DATA_FIELD_DEF(type, field) \
    const size_t field##At = Take(1); \
    void set_##field(type value) { words_[field##At] = value; }
#define TILING_DATA_FIELD_DEF_ARR(type, n, field) \
    const size_t field##At = Take(n); \
    void set_##field(const type *value) { std::memcpy(&words_[field##At], value, n * 4); }
#define END_TILING_DATA_DEF }
#define REGISTER_TILING_DATA_CLASS(op, name)
