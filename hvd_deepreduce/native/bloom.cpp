#include "bloom.hpp"

#include <algorithm>
#include <array>

#include "bitmap.hpp"
#include "bytes.hpp"
#include "positions.hpp"
#include "random.hpp"

namespace deepreduce::bloom {
namespace {

/// So many neighbours share their draws: the bits of a block under one hash stand side by side, so that one load tests
/// them all. A filter has room for a block, hence no two of its positions share a bit under one hash.
constexpr std::uint64_t kBlock = 64;

/// Where the bits of a block begin under a hash.
inline std::uint64_t start_of(std::uint64_t block, unsigned hash, std::uint64_t bits) {
    return random_below(random_u64(0, 32 * block + hash), bits);
}

inline std::uint64_t place_of(std::uint64_t position, unsigned hash, std::uint64_t bits) {
    const std::uint64_t place = start_of(position / kBlock, hash, bits) + position % kBlock;
    return place < bits ? place : place - bits;
}

/// The 64 bits of a filter from bit `start` on.
inline std::uint64_t window(const std::uint8_t* unrolled, std::uint64_t start) {
    const std::uint8_t* from = unrolled + start / 8;
    const unsigned shift = start % 8;
    const std::uint64_t next = from[8];
    return (load<std::uint64_t>(from) >> shift) | (next << 1 << (63 - shift));
}

}  // namespace

template <typename P>
Status insert(Span<const P> positions, std::uint64_t numel, unsigned hashes, Span<std::uint8_t> filter) {
    const Status status = check_positions(positions, numel);
    if (!status.ok()) {
        return status;
    }
    const std::uint64_t bits = 8 * filter.size;
    for (const P position : positions) {
        for (unsigned hash = 0; hash < hashes; ++hash) {
            const std::uint64_t place = place_of(position, hash, bits);
            filter[place / 8] = static_cast<std::uint8_t>(filter[place / 8] | (1u << (place % 8)));
        }
    }
    return {};
}

std::uint64_t members(Bytes unrolled, unsigned hashes, std::uint64_t numel, Span<std::uint8_t> bitmap) {
    const std::uint64_t bits = 8 * (unrolled.size - kUnrolled);
    std::uint64_t count = 0;
    for (std::uint64_t block = 0; block * kBlock < numel; ++block) {
        const std::uint64_t left = std::min(kBlock, numel - block * kBlock);
        std::uint64_t mask = ~std::uint64_t{0} >> (kBlock - left);
        for (unsigned hash = 0; hash < hashes; ++hash) {
            mask &= window(unrolled.data, start_of(block, hash, bits));
        }
        count += static_cast<unsigned>(__builtin_popcountll(mask));
        std::array<std::uint8_t, 8> bytes;
        store(bytes.data(), mask);
        std::copy_n(bytes.begin(), bitmap_size(left), bitmap.data + 8 * block);
    }
    return count;
}

template <typename P>
void places(Span<const P> positions, unsigned hashes, std::uint64_t bytes, Span<std::uint64_t> out) {
    std::size_t filled = 0;
    for (const P position : positions) {
        for (unsigned hash = 0; hash < hashes; ++hash) {
            out[filled++] = place_of(position, hash, 8 * bytes);
        }
    }
}

template Status insert(Span<const std::uint32_t>, std::uint64_t, unsigned, Span<std::uint8_t>);
template Status insert(Span<const std::uint64_t>, std::uint64_t, unsigned, Span<std::uint8_t>);
template void places(Span<const std::uint32_t>, unsigned, std::uint64_t, Span<std::uint64_t>);
template void places(Span<const std::uint64_t>, unsigned, std::uint64_t, Span<std::uint64_t>);

}  // namespace deepreduce::bloom
