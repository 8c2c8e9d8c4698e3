// Index codec `bitmap`: FORMAT.md, 4.3.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

/// Bytes of a bitmap.
inline std::uint64_t bitmap_size(std::uint64_t numel) { return numel / 8 + (numel % 8 != 0); }

/// Checks the positions first; `out` has bitmap_size(numel) bytes.
template <typename P>
Status bitmap_encode(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out);

/// Fails unless the payload has the right length: asked before memory is reserved for the positions.
Status bitmap_check(Bytes payload, std::uint64_t kept, std::uint64_t numel);

/// Fills `positions`, whose size is the number kept.
template <typename P>
Status bitmap_decode(Bytes payload, std::uint64_t numel, Span<P> positions);

}  // namespace deepreduce
