// Index codec `delta`: FORMAT.md, 4.8.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

/// Bytes that hold the payload of any support of this size.
std::uint64_t delta_capacity(std::uint64_t kept, std::uint64_t numel);

/// Checks the positions, writes what fits into `out`, and sets `size` to the length of the whole payload.
template <typename P>
Status delta_encode(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out, std::uint64_t& size);

/// Fails where so many positions can't be in so few bytes, or in numel: asked before memory is reserved for them.
Status delta_check(Bytes payload, std::uint64_t kept, std::uint64_t numel);

/// Fills `positions`, whose size is the number kept.
template <typename P>
Status delta_decode(Bytes payload, std::uint64_t numel, Span<P> positions);

}  // namespace deepreduce
