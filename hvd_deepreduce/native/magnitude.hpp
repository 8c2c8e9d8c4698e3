// Floats ordered by absolute value through their bit patterns with the sign cleared: exact, and NaN comes last.
#pragma once

#include "bytes.hpp"

namespace deepreduce {

template <typename V>
struct FloatBits;

template <>
struct FloatBits<float> {
    using Bits = std::uint32_t;
    static constexpr Bits kInfinity = 0x7f800000u;
    static constexpr Bits kOneExponent = 0x00800000u;
    static constexpr Bits kSign = 0x80000000u;
};

template <>
struct FloatBits<double> {
    using Bits = std::uint64_t;
    static constexpr Bits kInfinity = 0x7ff0000000000000u;
    static constexpr Bits kOneExponent = 0x0010000000000000u;
    static constexpr Bits kSign = 0x8000000000000000u;
};

template <typename V>
using Bits = typename FloatBits<V>::Bits;

template <typename V>
inline Bits<V> magnitude(V value) {
    return load<Bits<V>>(&value) & ~FloatBits<V>::kSign;
}

/// The inverse of `magnitude`, for values that are not negative.
template <typename V>
inline V from_magnitude(Bits<V> bits) {
    return load<V>(&bits);
}

}  // namespace deepreduce
