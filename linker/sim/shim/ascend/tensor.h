// LocalTensor is a typed window of UB with its bounds, which the scalar unit can access by element.
#pragma once

#include <type_traits>

#include "core.h"

namespace AscendC {
namespace shim {

template <class T> T load(const uint8_t *p) {
    T v;
    std::memcpy(&v, p, sizeof(T));
    return v;
}

template <class T> void store(uint8_t *p, T v) { std::memcpy(p, &v, sizeof(T)); }

template <class T, class... U> constexpr bool one_of() { return (std::is_same<T, U>::value || ...); }

// False for every type, for a call that must not be compiled.
template <class T> constexpr bool never() { return sizeof(T) == 0; }

template <class T> constexpr bool element() {
    return one_of<T, int8_t, uint8_t, int16_t, uint16_t, half, int32_t, uint32_t, float, int64_t, uint64_t>();
}

} // namespace shim

template <typename T> class LocalTensor {
    static_assert(shim::element<T>(), "this element type does not exist on dav-c220");
    template <typename U> friend class LocalTensor;

  public:
    // Byte addresses in UB: the window starts at `addr`, and the tensor that it is a part of is
    // [lo, hi).
    uint32_t addr = 0, lo = 0, hi = 0;

    LocalTensor() = default;

    LocalTensor(TPosition p, uint32_t byte_addr, uint32_t elems, AVSG_SHIM_SITE)
        : addr(byte_addr), lo(byte_addr) {
        shim::CallSite x{"LocalTensor", at};
        if (p == TPosition::GM)
            shim::fail("bounds", x, "the position of a LocalTensor is VECIN, VECCALC or VECOUT, not GM");
        uint64_t end = byte_addr + uint64_t(elems) * sizeof(T);
        if (byte_addr % shim::BLOCK)
            shim::fail("alignment", x, "starts at UB byte ", shim::hex(byte_addr), ", which is no multiple of 32");
        if (end > shim::UB_BYTES)
            shim::fail("bounds", x, "ends at UB byte ", end, "; UB has ", shim::UB_BYTES);
        if (end % shim::BLOCK)
            shim::fail("alignment", x, "has ", end - byte_addr, " bytes, which is no multiple of 32");
        hi = uint32_t(end);
    }

    uint32_t GetSize() const { return (hi - addr) / uint32_t(sizeof(T)); }

    LocalTensor operator[](uint32_t offset) const {
        uint64_t to = addr + uint64_t(offset) * sizeof(T);
        // An empty window at the end of the tensor is legal; an access to it is not.
        if (to > hi)
            shim::fail("bounds", shim::CallSite{"LocalTensor::operator[]"}, "offset ", offset, " is past the tensor's ",
                       GetSize(), " elements (UB ", shim::hex(addr), "..", shim::hex(hi), ")");
        LocalTensor t(*this);
        t.addr = uint32_t(to);
        return t;
    }

    template <typename U> LocalTensor<U> ReinterpretCast() const {
        LocalTensor<U> t;
        t.addr = addr, t.lo = lo, t.hi = hi;
        return t;
    }

    T GetValue(uint32_t index, AVSG_SHIM_SITE) const {
        shim::CallSite x{"LocalTensor::GetValue", at};
        shim::Core &c = shim::core(x);
        uint32_t a = element_address(x, index);
        c.accesses(a, a + uint32_t(sizeof(T)), false);
        c.issue_now(shim::S, x, [] {});
        if (c.checks && c.any_undefined(a, sizeof(T)))
            shim::fail("undefined", x, "element ", index, " (UB byte ", shim::hex(a),
                       ") holds bits that no instruction has defined");
        return shim::load<T>(c.ub + a);
    }

    template <typename V> void SetValue(uint32_t index, V value, AVSG_SHIM_SITE) const {
        static_assert(std::is_same<V, T>::value || (std::is_integral<V>::value && std::is_integral<T>::value) ||
                          (std::is_floating_point<T>::value && std::is_arithmetic<V>::value),
                      "SetValue converts the value silently on the device: cast it to the tensor's element type");
        shim::CallSite x{"LocalTensor::SetValue", at};
        shim::Core &c = shim::core(x);
        uint32_t a = element_address(x, index);
        T v = T(value);
        c.accesses(a, a + uint32_t(sizeof(T)), true);
        c.issue(shim::S, x, [&c, a, v] {
            shim::store<T>(c.ub + a, v);
            c.define(a, sizeof(T));
        });
    }

  private:
    uint32_t element_address(const shim::CallSite &x, uint32_t index) const {
        uint64_t a = addr + uint64_t(index) * sizeof(T);
        if (a + sizeof(T) > hi)
            shim::fail("bounds", x, "element ", index, " is outside the tensor's ", GetSize(), " elements (UB ",
                       shim::hex(addr), "..", shim::hex(hi), ")");
        return uint32_t(a);
    }
};

} // namespace AscendC
