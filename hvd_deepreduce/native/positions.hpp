// Supports as arrays of positions. P is uint32 where numel <= kMaxNarrow, else uint64.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

constexpr std::uint64_t kMaxNumel = std::uint64_t{1} << 33;
constexpr std::uint64_t kMaxNarrow = std::uint64_t{1} << 32;

/// Fails with Fault::setting unless strictly increasing and below numel; names the first offender.
template <typename P>
Status check_positions(Span<const P> positions, std::uint64_t numel);

/// Fails with Fault::setting unless every position is below numel, in whatever order.
template <typename P>
Status check_inside(Span<const P> positions, std::uint64_t numel);

/// FORMAT.md, 4.1. Fails unless the payload has the right length: asked before memory is reserved for the positions.
Status raw_positions_check(Bytes payload, std::uint64_t kept, std::uint64_t numel);

/// Fills `positions`, whose size is the number kept.
template <typename P>
Status raw_positions_decode(Bytes payload, std::uint64_t numel, Span<P> positions);

}  // namespace deepreduce
