// Draws without state: FORMAT.md, section 6.
#pragma once

#include <cstdint>

namespace deepreduce {

/// Draw `index` of `key`: SplitMix64 (Steele, Lea and Flood 2014) at place index + 1.
inline std::uint64_t random_u64(std::uint64_t key, std::uint64_t index) {
    std::uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/// The same draw as a binary64 in [0, 1).
inline double random_unit(std::uint64_t key, std::uint64_t index) {
    return static_cast<double>(random_u64(key, index) >> 11) * 0x1p-53;
}

/// A draw as an integer below `limit`: the high half of the product, uniform up to one part in 2^64 / limit, without a
/// division.
inline std::uint64_t random_below(std::uint64_t draw, std::uint64_t limit) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(draw) * limit) >> 64);
}

}  // namespace deepreduce
