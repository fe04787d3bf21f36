// GlobalTensor is a typed window of GM. The scalar unit accesses it through its data cache.
#pragma once

#include "tensor.h"

namespace AscendC {

template <typename T> class GlobalTensor {
    static_assert(shim::element<T>(), "this element type does not exist on dav-c220");
    T *base = nullptr;
    uint64_t elems = 0; // 0 if no size was given: only the registered regions bound the tensor.

  public:
    void SetGlobalBuffer(__gm__ T *address, uint64_t size) { base = address, elems = size; }
    void SetGlobalBuffer(__gm__ T *address) { SetGlobalBuffer(address, 0); }
    __gm__ const T *GetPhyAddr() const { return base; }
    __gm__ T *GetPhyAddr(uint64_t offset) const { return reinterpret_cast<T *>(address(offset)); }
    uint64_t GetSize() const { return elems; }

    uint64_t address(uint64_t index) const { return reinterpret_cast<uint64_t>(base) + index * sizeof(T); }

    GlobalTensor operator[](uint64_t offset) const {
        if (elems && offset > elems)
            shim::fail("bounds", shim::CallSite{"GlobalTensor::operator[]"}, "offset ", offset, " is past the ", elems,
                       " elements that SetGlobalBuffer was given");
        GlobalTensor t;
        t.base = reinterpret_cast<T *>(address(offset));
        t.elems = elems ? elems - offset : 0;
        // A window with no elements left must not become one without a size.
        if (elems && !t.elems) t.base = nullptr;
        return t;
    }

    T GetValue(uint64_t index, AVSG_SHIM_SITE) const {
        shim::CallSite x{"GlobalTensor::GetValue", at};
        shim::Core &c = shim::core(x);
        uint64_t a = element_address(x, index);
        const shim::Region &r = c.launch_state.region(x, a, a + sizeof(T), false, true);
        c.gm_reads(a, a + sizeof(T));
        if (!c.cache.find(a)) c.time.takes(&avsg_shim_prices::latency, 1);
        c.issue_now(shim::S, x, [] {});
        shim::CachedLine &l = line(c, x, a, r, shim::line_bits(shim::DataCache::line_of(a), a, a + sizeof(T)));
        return shim::load<T>(l.data + a % shim::LINE);
    }

    void SetValue(uint64_t index, T value, AVSG_SHIM_SITE) const {
        shim::CallSite x{"GlobalTensor::SetValue", at};
        shim::Core &c = shim::core(x);
        uint64_t a = element_address(x, index);
        const shim::Region &r = c.launch_state.region(x, a, a + sizeof(T), true, true);
        c.gm_writes(a, a + sizeof(T));
        c.issue_now(shim::S, x, [] {});
        // Cleaning the line writes all of its bytes, so none of them may be stale.
        shim::CachedLine &l = line(c, x, a, r, ~uint64_t(0));
        shim::store<T>(l.data + a % shim::LINE, value);
        l.dirty |= shim::line_bits(shim::DataCache::line_of(a), a, a + sizeof(T));
        l.by = x;
    }

    // Returns the address of a DMA move of `bytes` bytes from here on, after a check against the
    // size that SetGlobalBuffer was given.
    uint64_t dma_address(const shim::CallSite &x, uint64_t bytes) const {
        if (elems && bytes > elems * sizeof(T))
            shim::fail("bounds", x, "moves ", bytes, " bytes of global memory and the GlobalTensor has only ",
                       elems * sizeof(T), " left");
        return address(0);
    }

  private:
    uint64_t element_address(const shim::CallSite &x, uint64_t index) const {
        uint64_t a = address(index);
        if (elems && index >= elems)
            shim::fail("bounds", x, "element ", index, " is outside the ", elems,
                       " elements that SetGlobalBuffer was given");
        if (a % sizeof(T)) shim::fail("alignment", x, "address ", shim::hex(a), " is no multiple of ", sizeof(T));
        return a;
    }

    // Returns the cached line of address `a`. The bytes whose bits are set in `bytes` must not be
    // stale.
    static shim::CachedLine &line(shim::Core &c, const shim::CallSite &x, uint64_t a, const shim::Region &r,
                                  uint64_t bytes) {
        shim::CachedLine *old = c.cache.find(a);
        if (old && (old->stale & bytes) && c.checks)
            shim::fail("cache", x, "uses line ", shim::hex(shim::DataCache::line_of(a)),
                       " from the scalar cache, but memory was written since: missing ",
                       "DataCacheCleanAndInvalid before it");
        return c.cache.load(a, r.lo, r.hi);
    }
};

template <typename T, CacheLine entire, DcciDst dst = DcciDst::CACHELINE_OUT>
__aicore__ inline void DataCacheCleanAndInvalid(const GlobalTensor<T> &g, AVSG_SHIM_SITE) {
    static_assert(dst == DcciDst::CACHELINE_OUT || dst == DcciDst::CACHELINE_ALL,
                  "only the lines of global memory are cached: CACHELINE_OUT");
    shim::CallSite x{"DataCacheCleanAndInvalid", at};
    shim::Core &c = shim::core(x);
    // The clean is a store of the scalar unit to memory, so DMA needs S_MTE2 or S_MTE3 after it.
    auto publish = [&](uint64_t, shim::CachedLine &l) {
        uint64_t line = shim::DataCache::line_of(l.lo);
        for (uint64_t a = l.lo; a < l.hi; ++a)
            if (l.dirty >> (a - line) & 1) c.gm_writes(a, a + 1);
    };
    if (entire == CacheLine::SINGLE_CACHE_LINE) {
        uint64_t a = g.address(0);
        c.cache.for_each_overlapping(a, a + 1, publish);
        c.issue_now(shim::S, x, [&] { c.cache.write_back(a, !c.checks); });
    } else {
        c.cache.for_each(publish);
        c.issue_now(shim::S, x, [&] {
            std::vector<uint64_t> all;
            c.cache.for_each([&](uint64_t line, shim::CachedLine &) { all.push_back(line); });
            for (uint64_t line : all) c.cache.write_back(line, !c.checks);
        });
    }
}

} // namespace AscendC
