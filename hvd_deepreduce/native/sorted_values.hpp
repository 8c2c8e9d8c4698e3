// Values by size, for codecs that look at a sorted curve: FORMAT.md, 5.11.
#pragma once

#include "bytes.hpp"
#include "magnitude.hpp"
#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

/// A value as a number that falls as the value rises, zeros of both signs alike, and where it stood.
template <typename V>
struct Ranked {
    Bits<V> key;
    std::uint32_t place;
};

/// The most values that can be counted and placed.
constexpr std::uint64_t kMostSorted = 0xffffffffu;

template <typename V>
inline Bits<V> falling_key(V value) {
    const Bits<V> bits = load<Bits<V>>(&value);
    constexpr Bits<V> kSign = FloatBits<V>::kSign;
    return bits > kSign ? bits : static_cast<Bits<V>>(kSign - 1 - (bits & ~kSign));
}

/// The inverse; zero is +0.
template <typename V>
inline V value_of_key(Bits<V> key) {
    constexpr Bits<V> kSign = FloatBits<V>::kSign;
    const Bits<V> bits = key > kSign - 1 ? key : static_cast<Bits<V>>(kSign - 1 - key);
    return load<V>(&bits);
}

/// Values in falling order, of equal ones the first first. A view of either of two buffers of as many elements.
/// There must be no NaN among them.
template <typename V>
Span<const Ranked<V>> sort_falling(Span<const V> values, Span<Ranked<V>> first, Span<Ranked<V>> second);

template <typename V>
bool are_finite(Span<const V> values) {
    for (const V value : values) {
        if (magnitude(value) >= FloatBits<V>::kInfinity) {
            return false;
        }
    }
    return true;
}

/// How many sorted values are not below zero.
template <typename V>
std::size_t count_positive(Span<const Ranked<V>> sorted);

/// Bits of a place among so many: ceil(log2 kept).
unsigned place_bits(std::uint64_t kept);

/// Bytes of a packed permutation.
inline std::uint64_t permutation_size(std::uint64_t kept) { return (kept * place_bits(kept) + 7) / 8; }

/// Packs the places; `out` has permutation_size bytes.
template <typename V>
void pack_places(Span<const Ranked<V>> sorted, Span<std::uint8_t> out);

/// Puts sorted values where a packed permutation says. `seen` holds a zero for each 64 values. Fails where a place is
/// outside, or there twice.
template <typename V>
Status unpack_values(const char* where, Bytes packed, Span<const V> sorted, Span<std::uint64_t> seen, Span<V> values);

}  // namespace deepreduce
