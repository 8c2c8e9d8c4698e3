#include "bloom_conflicts.hpp"

#include <algorithm>
#include <tuple>

#include "random.hpp"

namespace deepreduce::bloom {
namespace {

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

/// Calls use(place) for each different place of a member.
template <typename Use>
void for_each_place(Span<const std::uint64_t> own, Use use) {
    for (std::size_t i = 0; i < own.size; ++i) {
        std::size_t j = 0;
        while (own[j] != own[i]) {
            ++j;
        }
        if (j == i) {
            use(own[i]);
        }
    }
}

/// Takes the members that are alone in one of their sets, and returns how many these are; none if they are more than
/// `kept`, which is not so of any filter that was made of `kept` positions.
std::uint64_t take_certain(Span<const std::uint64_t> places, unsigned hashes, std::uint64_t kept,
                           Span<const std::uint32_t> sizes, Span<std::uint8_t> taken) {
    std::uint64_t count = 0;
    for (std::size_t member = 0; member < taken.size; ++member) {
        std::uint32_t least = ~std::uint32_t{0};
        for (const std::uint64_t place : places.part(member * hashes, hashes)) {
            least = std::min(least, sizes[place]);
        }
        taken[member] = least == 1;
        count += least == 1;
    }
    if (count > kept) {
        std::fill(taken.begin(), taken.end(), std::uint8_t{0});
        return 0;
    }
    return count;
}

/// Takes one member from each set that has some left, and again, until `kept` are taken, of which `count` are.
void take_in_rounds(Span<const Conflict> conflicts, std::uint64_t kept, std::uint64_t count, std::uint64_t key,
                    Span<std::uint8_t> taken) {
    while (count < kept) {
        std::size_t end = 0;
        for (std::size_t start = 0; start < conflicts.size && count < kept; start = end) {
            std::uint64_t left = 0;
            for (end = start; end < conflicts.size && conflicts[end].bit == conflicts[start].bit; ++end) {
                left += taken[conflicts[end].member] == 0;
            }
            if (left == 0) {
                continue;
            }
            std::uint64_t skipped = left == 1 ? 0 : random_below(random_u64(key, count), left);
            std::size_t i = start;
            while (taken[conflicts[i].member] != 0 || skipped-- != 0) {
                ++i;
            }
            taken[conflicts[i].member] = 1;
            ++count;
        }
    }
}

}  // namespace

Status choose_by_conflicts(Span<const std::uint64_t> places, unsigned hashes, std::uint64_t kept, std::uint64_t key,
                           Span<std::uint32_t> sizes, Span<Conflict> conflicts, Span<std::uint8_t> taken) {
    const Status status = check(places, sizes.size, kept, taken.size);
    if (!status.ok()) {
        return status;
    }
    std::fill(sizes.begin(), sizes.end(), 0);
    for (std::size_t member = 0; member < taken.size; ++member) {
        for_each_place(places.part(member * hashes, hashes), [&](std::uint64_t place) { ++sizes[place]; });
    }
    // Sets of one come first, whatever their order. Then only members that are left matter, which are few.
    const std::uint64_t count = take_certain(places, hashes, kept, sizes, taken);
    std::size_t filled = 0;
    for (std::size_t member = 0; member < taken.size; ++member) {
        if (taken[member] == 0) {
            for_each_place(places.part(member * hashes, hashes), [&](std::uint64_t place) {
                conflicts[filled++] = {sizes[place], static_cast<std::uint32_t>(member), place};
            });
        }
    }
    std::sort(conflicts.begin(), conflicts.begin() + filled, [](const Conflict& left, const Conflict& right) {
        return std::tie(left.size, left.bit, left.member) < std::tie(right.size, right.bit, right.member);
    });
    take_in_rounds(conflicts.part(0, filled), kept, count, key, taken);
    return {};
}

}  // namespace deepreduce::bloom
