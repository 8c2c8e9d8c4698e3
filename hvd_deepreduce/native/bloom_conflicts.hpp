// Policy P2 of Bloom filters: FORMAT.md, 4.9.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce::bloom {

/// Overwritten by `choose_by_conflicts`.
struct ConflictScratch {
    /// bits + 1.
    Span<std::uint32_t> starts;
    /// As many as there are places.
    Span<std::uint32_t> owners;
    /// As many as there are places, or bits where these are fewer.
    Span<std::uint64_t> order;
    /// Two more than there are members.
    Span<std::uint64_t> sizes;
};

/// Sets `kept` of `taken`, which holds one zero for each member. `places` are the bits of all members, `hashes` for
/// each. Fails with Fault::setting where one is not below `bits`, fewer members than `kept` are given, or 2**32 places
/// or more.
Status choose_by_conflicts(Span<const std::uint64_t> places, unsigned hashes, std::uint64_t bits, std::uint64_t kept,
                           std::uint64_t key, const ConflictScratch& scratch, Span<std::uint8_t> taken);

}  // namespace deepreduce::bloom
