// Index codec `bloom`: FORMAT.md, 4.9 and 4.12. The head of its payload, and the filter of the native engine.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce::bloom {

constexpr unsigned kMostHashes = 31;
constexpr std::uint64_t kMostBitsPerKept = 64;

/// Which of the members, the positions that the filter reports, are decoded.
enum class Policy : std::uint8_t { all, first, middle, last, random, conflicts };

enum class Engine { native, pybloom };

/// What stands before the filter. `size` is in bytes of the filter (native), or in bits of each of its slices, one for
/// each hash (pybloom).
struct Head {
    Policy policy = Policy::all;
    unsigned hashes = 0;
    std::uint64_t size = 0;
    /// Of the policies `random` and `conflicts`, else 0.
    std::uint64_t key = 0;
};

constexpr std::size_t kHeadCapacity = 1 + 5 + 8;

/// Returns how many of the kHeadCapacity bytes it wrote. `size` is below 2**35.
std::size_t write_head(const Head& head, Span<std::uint8_t> out);

/// Fails unless the payload is a head, a filter, and nothing more, and the filter may hold so many positions.
Status read(Bytes payload, Engine engine, std::uint64_t kept, std::uint64_t numel, Head& head, Bytes& filter);

// --- The native engine: filters of at least kLeastBytes, which `read` makes sure of. ---

constexpr std::uint64_t kLeastBytes = 8;

/// Sets the bits of the positions, which it checks first, in a filter of zeros.
template <typename P>
Status insert(Span<const P> positions, std::uint64_t numel, unsigned hashes, Span<std::uint8_t> filter);

/// Bytes to be read beyond the end of a filter, a copy of its first ones.
constexpr std::size_t kUnrolled = 8;

/// Marks the members in a bitmap of bitmap_size(numel) bytes, and returns how many there are. `unrolled` is a filter
/// and kUnrolled bytes more.
std::uint64_t members(Bytes unrolled, unsigned hashes, std::uint64_t numel, Span<std::uint8_t> bitmap);

/// The bits of each position, `hashes` of them in turn, in a filter of so many bytes.
template <typename P>
void places(Span<const P> positions, unsigned hashes, std::uint64_t bytes, Span<std::uint64_t> out);

}  // namespace deepreduce::bloom
