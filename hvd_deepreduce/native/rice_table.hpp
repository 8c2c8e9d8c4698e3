// The divisors of the rice codec and what a gap costs under each: FORMAT.md, 4.4.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace deepreduce::rice {

constexpr unsigned kBlock = 128;
constexpr unsigned kEntries = 131;
/// As many one bits announce an escape.
constexpr unsigned kEscape = 24;

/// Entries that share their shift, and so look at the same g >> shift: the first three, then four by four.
constexpr unsigned kGroups = 33;
constexpr unsigned kLanes = 4;

/// m * 2**shift.
struct Divisor {
    unsigned m;
    unsigned shift;

    constexpr std::uint64_t value() const { return std::uint64_t{m} << shift; }
};

constexpr unsigned group_of(unsigned entry) { return entry < 3 ? 0 : (entry - 3) / 4 + 1; }
constexpr unsigned first_of(unsigned group) { return group == 0 ? 0 : 4 * group - 1; }
constexpr unsigned lanes_of(unsigned group) { return group == 0 ? 3 : 4; }
constexpr unsigned shift_of(unsigned group) { return group == 0 ? 0 : group - 1; }

constexpr Divisor divisor(unsigned entry) {
    return {entry < 3 ? entry + 1 : 4 + (entry - 3) % 4, shift_of(group_of(entry))};
}

/// The entry a stream starts with: the largest divisor up to ln 2 times the mean gap, nearly.
constexpr unsigned first_entry(std::uint64_t numel, std::uint64_t kept) {
    const std::uint64_t target = std::max<std::uint64_t>(1, (11 * (numel - kept) + 8 * kept) / (16 * kept));
    unsigned entry = 0;
    while (entry + 1 < kEntries && divisor(entry + 1).value() <= target) {
        ++entry;
    }
    return entry;
}

/// W: the bits of an escaped gap.
constexpr unsigned escape_width(std::uint64_t numel) {
    unsigned width = 1;
    while (width < 64 && numel > std::uint64_t{1} << width) {
        ++width;
    }
    return width;
}

/// A remainder below m in truncated binary: r < c takes `low` bits, others one more.
struct Remainder {
    unsigned low;
    unsigned c;
};

/// For m = 1 the pair (0, 1) says what it should: every remainder is below c and takes no bits.
constexpr std::array<Remainder, 8> kRemainders{{{0, 0}, {0, 1}, {0, 0}, {1, 1}, {1, 0}, {2, 3}, {2, 2}, {2, 1}}};

/// A field of the bit stream.
struct Code {
    std::uint32_t bits;
    std::uint32_t count;
};

/// Quotient and remainder of h = g >> shift, which stays below kEscape * m.
constexpr Code code_of(unsigned h, unsigned m) {
    const unsigned q = h / m;
    const unsigned r = h % m;
    const Remainder& form = kRemainders[m];
    const std::uint32_t unary = (std::uint32_t{1} << q) - 1;
    if (r < form.c) {
        return {unary | r << (q + 1), q + 1 + form.low};
    }
    const unsigned shifted = r + form.c;
    return {unary | (shifted / 2) << (q + 1) | (shifted % 2) << (q + 1 + form.low), q + 2 + form.low};
}

/// kCodes[m][h]
constexpr auto kCodes = [] {
    std::array<std::array<Code, kEscape * 7>, 8> codes{};
    for (unsigned m = 1; m < 8; ++m) {
        for (unsigned h = 0; h < kEscape * m; ++h) {
            codes[m][h] = code_of(h, m);
        }
    }
    return codes;
}();

/// The code that eight bits begin with; no bits where it is longer, or an escape.
struct ShortCode {
    std::uint8_t h;
    std::uint8_t count;
};

/// kShortCodes[m][the next eight bits]
constexpr auto kShortCodes = [] {
    std::array<std::array<ShortCode, 256>, 8> codes{};
    for (unsigned m = 1; m < 8; ++m) {
        for (unsigned h = 0; h < kEscape * m && kCodes[m][h].count <= 8; ++h) {
            const Code& code = kCodes[m][h];
            for (unsigned rest = 0; rest < 256u >> code.count; ++rest) {
                codes[m][code.bits | rest << code.count] = {static_cast<std::uint8_t>(h),
                                                            static_cast<std::uint8_t>(code.count)};
            }
        }
    }
    return codes;
}();

/// What a gap with g >> shift = h costs in bits, without those of the shift, for all entries of a group at once: 16
/// bits for each, which hold the sum of a block. Escapes are counted apart.
struct GroupCosts {
    std::array<std::uint64_t, 256> bits{};
    std::array<std::uint64_t, 256> escapes{};
};

constexpr GroupCosts group_costs(unsigned first_m, unsigned lanes) {
    GroupCosts costs;
    for (unsigned h = 0; h < 256; ++h) {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const unsigned m = first_m + lane;
            if (h < kEscape * m) {
                costs.bits[h] |= std::uint64_t{code_of(h, m).count} << (16 * lane);
            } else {
                costs.escapes[h] |= std::uint64_t{1} << (16 * lane);
            }
        }
    }
    return costs;
}

constexpr GroupCosts kSmallCosts = group_costs(1, 3);
constexpr GroupCosts kCosts = group_costs(4, 4);

}  // namespace deepreduce::rice
