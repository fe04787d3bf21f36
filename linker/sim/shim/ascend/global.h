// GlobalTensor is a typed window of GM. Kernels move its data by DMA only: the scalar unit would access
// it through a cache that is coherent with nothing, which is not modelled.
#pragma once

#include "tensor.h"

namespace AscendC {

template <typename T> class GlobalTensor {
    static_assert(shim::element<T>(), "this element type does not exist on dav-c220");
    T *base = nullptr;
    uint64_t elems = 0; // 0 if no size was given: only the registered regions bound the tensor.

  public:
    void SetGlobalBuffer(__gm__ T *address, uint64_t size = 0) { base = address, elems = size; }

    GlobalTensor operator[](uint64_t offset) const {
        if (elems && offset > elems)
            shim::fail("bounds", shim::CallSite{"GlobalTensor::operator[]"}, "offset ", offset, " is past the ", elems,
                       " elements that SetGlobalBuffer was given");
        GlobalTensor t;
        t.base = reinterpret_cast<T *>(reinterpret_cast<uint64_t>(base) + offset * sizeof(T));
        t.elems = elems ? elems - offset : 0;
        // A window with no elements left must not become one without a size.
        if (elems && !t.elems) t.base = nullptr;
        return t;
    }

    // Returns the address of a DMA move of `bytes` bytes from here on, after a check against the
    // size that SetGlobalBuffer was given.
    uint64_t dma_address(const shim::CallSite &x, uint64_t bytes) const {
        if (elems && bytes > elems * sizeof(T))
            shim::fail("bounds", x, "moves ", bytes, " bytes of global memory and the GlobalTensor has only ",
                       elems * sizeof(T), " left");
        return reinterpret_cast<uint64_t>(base);
    }
};

} // namespace AscendC
