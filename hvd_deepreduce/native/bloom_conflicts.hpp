// Policy P2 of Bloom filters: FORMAT.md, 4.9.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce::bloom {

/// A member that has a bit, and how many have it.
struct Conflict {
    std::uint32_t size;
    std::uint32_t member;
    std::uint64_t bit;
};

/// Sets `kept` of `taken`, which holds one zero for each member. `places` are the bits of all members, `hashes` for
/// each. `sizes` has `bits` elements, `conflicts` as many as there are places; they are overwritten. Fails with
/// Fault::setting where a place is not below `bits`, fewer members than `kept` are given, or 2**32 places.
Status choose_by_conflicts(Span<const std::uint64_t> places, unsigned hashes, std::uint64_t kept, std::uint64_t key,
                           Span<std::uint32_t> sizes, Span<Conflict> conflicts, Span<std::uint8_t> taken);

}  // namespace deepreduce::bloom
