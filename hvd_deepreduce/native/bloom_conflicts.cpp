#include "bloom_conflicts.hpp"

#include <algorithm>

#include "random.hpp"

namespace deepreduce::bloom {
namespace {

/// Calls use(member, place) for each member, from the last to the first, and each different place of it.
template <typename Use>
void for_each_place(Span<const std::uint64_t> places, unsigned hashes, std::size_t members, Use use) {
    for (std::size_t member = members; member-- > 0;) {
        const auto own = places.part(member * hashes, hashes);
        for (unsigned i = 0; i < hashes; ++i) {
            if (std::find(own.begin(), own.begin() + i, own[i]) == own.begin() + i) {
                use(static_cast<std::uint32_t>(member), own[i]);
            }
        }
    }
}

Status check(Span<const std::uint64_t> places, std::uint64_t bits, std::uint64_t kept, std::size_t members) {
    constexpr const char* kWhere = "bloom conflicts";
    if (places.size > 0xffffffff) {
        return failure(Fault::setting, kWhere, "{} bits of all members; fewer than 2**32 are allowed", places.size);
    }
    if (kept > members) {
        return failure(Fault::setting, kWhere, "{} of {} members can't be kept", kept, members);
    }
    for (const std::uint64_t place : places) {
        if (place >= bits) {
            return failure(Fault::setting, kWhere, "bit {} is outside a filter of {} bits", place, bits);
        }
    }
    return {};
}

/// Fills the sets: that of a bit has the owners from starts[bit] to starts[bit + 1], in order.
void fill_sets(Span<const std::uint64_t> places, unsigned hashes, std::uint64_t bits, std::size_t members,
               const ConflictScratch& scratch) {
    std::fill(scratch.starts.begin(), scratch.starts.end(), 0);
    for_each_place(places, hashes, members, [&](std::uint32_t, std::uint64_t place) { ++scratch.starts[place]; });
    std::uint32_t end = 0;
    for (std::uint64_t bit = 0; bit < bits; ++bit) {
        end += scratch.starts[bit];
        scratch.starts[bit] = end;
    }
    scratch.starts[bits] = end;
    for_each_place(places, hashes, members, [&](std::uint32_t member, std::uint64_t place) {
        scratch.owners[--scratch.starts[place]] = member;
    });
}

/// Fills the order: bits that have owners, by how many, then by number; returns how many there are.
std::uint64_t sort_sets(std::uint64_t bits, const ConflictScratch& scratch) {
    const auto size_of = [&](std::uint64_t bit) { return scratch.starts[bit + 1] - scratch.starts[bit]; };
    std::fill(scratch.sizes.begin(), scratch.sizes.end(), 0);
    for (std::uint64_t bit = 0; bit < bits; ++bit) {
        ++scratch.sizes[size_of(bit) + std::size_t{1}];
    }
    const std::uint64_t empty = scratch.sizes[1];
    scratch.sizes[1] = 0;
    for (std::size_t size = 2; size < scratch.sizes.size; ++size) {
        scratch.sizes[size] += scratch.sizes[size - 1];
    }
    for (std::uint64_t bit = 0; bit < bits; ++bit) {
        if (size_of(bit) != 0) {
            scratch.order[scratch.sizes[size_of(bit)]++] = bit;
        }
    }
    return bits - empty;
}

}  // namespace

Status choose_by_conflicts(Span<const std::uint64_t> places, unsigned hashes, std::uint64_t bits, std::uint64_t kept,
                           std::uint64_t key, const ConflictScratch& scratch, Span<std::uint8_t> taken) {
    const Status status = check(places, bits, kept, taken.size);
    if (!status.ok()) {
        return status;
    }
    fill_sets(places, hashes, bits, taken.size, scratch);
    const std::uint64_t sets = sort_sets(bits, scratch);
    // Every member owns a bit, so each round takes one or more until all are taken.
    for (std::uint64_t count = 0; count < kept;) {
        for (std::uint64_t i = 0; i < sets && count < kept; ++i) {
            const std::uint64_t bit = scratch.order[i];
            const auto owners = scratch.owners.part(scratch.starts[bit], scratch.starts[bit + 1] - scratch.starts[bit]);
            std::uint64_t left = 0;
            for (const std::uint32_t owner : owners) {
                left += taken[owner] == 0;
            }
            if (left == 0) {
                continue;
            }
            std::uint64_t skipped = left == 1 ? 0 : random_below(random_u64(key, count), left);
            for (const std::uint32_t owner : owners) {
                if (taken[owner] == 0 && skipped-- == 0) {
                    taken[owner] = 1;
                    ++count;
                    break;
                }
            }
        }
    }
    return {};
}

}  // namespace deepreduce::bloom
