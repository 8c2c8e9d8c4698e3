// The form of a matrix payload in which all supports of a size are alike: FORMAT.md, 4.10, "Even".
#pragma once

#include <algorithm>

#include "matrix_coder.hpp"
#include "matrix_tables.hpp"

namespace deepreduce::matrix {

/// Whether so many positions may be coded so; what is spent on cells stays in proportion to what was kept.
constexpr bool may_be_even(std::uint64_t kept, std::uint64_t numel) {
    return numel <= std::uint64_t{1} << 31 && 8 * kept >= numel && kept > 0;
}

/// Whether an encoder tries it: where the other forms may be far from log2 C(numel, kept).
constexpr bool try_even(std::uint64_t kept, std::uint64_t numel) {
    return may_be_even(kept, numel) &&
           (numel <= 1u << 16 || (numel <= 1u << 20 && 4 * kept >= numel) || 32 * (numel - kept) < numel);
}

/// The share of "kept" for the next of `cells` cells, `kept` of which are; 0 < kept < cells.
constexpr std::uint64_t even_share(std::uint64_t kept, std::uint64_t cells) { return (kept << 32) / cells; }

/// Cells from which on what is left is known are not coded.
template <typename P>
void put_even(RangeEncoder& coder, Span<const P> positions, std::uint64_t numel) {
    std::uint64_t cell = 0;
    for (std::size_t i = 0; i < positions.size && positions.size - i < numel - cell && !coder.full(); ++cell) {
        const std::uint64_t share = even_share(positions.size - i, numel - cell);
        if (positions[i] == cell) {
            coder.put(0, share);
            ++i;
        } else {
            coder.put(share, kTotal - share);
        }
    }
    coder.finish();
}

/// False where the code is wrong.
template <typename P>
bool take_even(RangeDecoder& coder, std::uint64_t numel, Span<P> positions) {
    std::uint64_t cell = 0;
    std::size_t i = 0;
    for (; i < positions.size && positions.size - i < numel - cell && !coder.overrun(); ++cell) {
        const std::uint64_t share = even_share(positions.size - i, numel - cell);
        const std::uint64_t value = coder.value();
        if (value >= kTotal) {
            return false;
        }
        if (value < share) {
            coder.take(0, share);
            positions[i++] = static_cast<P>(cell);
        } else {
            coder.take(share, kTotal - share);
        }
    }
    for (; i < positions.size; ++i, ++cell) {
        positions[i] = static_cast<P>(cell);
    }
    return coder.ends_here();
}

}  // namespace deepreduce::matrix
