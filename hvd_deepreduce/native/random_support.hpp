// A support that follows from a key alone.
#pragma once

#include "span.hpp"

namespace deepreduce {

/// Sorted positions, out.size different ones below numel, every such set as likely as another: FORMAT.md, 4.11. `marks`
/// has (numel + 63) / 64 zeros, and is overwritten.
template <typename P>
void random_support(std::uint64_t key, std::uint64_t numel, Span<P> out, Span<std::uint64_t> marks);

}  // namespace deepreduce
