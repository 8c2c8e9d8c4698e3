// What the matrix codec computes powers and logarithms of two with: FORMAT.md, 4.10. Integers only, so that all
// machines agree.
#pragma once

#include <array>
#include <cstdint>

namespace deepreduce::matrix {

__extension__ typedef unsigned __int128 Wide;

/// All probabilities are multiples of 1 / kTotal.
constexpr std::uint64_t kTotal = std::uint64_t{1} << 32;

/// Hazards are counted in 2**-kCoarse parts of an octave when they are coded, and finer when they are added up.
constexpr unsigned kCoarse = 20;
constexpr unsigned kFine = 16;
constexpr std::uint64_t kOctave = std::uint64_t{1} << (kCoarse + kFine);

constexpr unsigned kSteps = 2048;

constexpr std::uint64_t root(Wide square) {
    std::uint64_t result = 0;
    for (unsigned bit = 64; bit-- > 0;) {
        const std::uint64_t next = result | std::uint64_t{1} << bit;
        if (Wide{next} * next <= square) {
            result = next;
        }
    }
    return result;
}

/// Entry i is 2**32 - round(2**(32 - i/kSteps)).
constexpr std::array<std::uint32_t, kSteps + 1> make_falls() {
    constexpr unsigned kPoint = 62;
    std::array<std::uint64_t, 12> roots{};
    std::uint64_t power = std::uint64_t{1} << (kPoint - 1);
    for (unsigned k = 0; k < roots.size(); ++k) {
        roots[k] = power;
        power = root(Wide{power} << kPoint);
    }
    std::array<std::uint32_t, kSteps + 1> falls{};
    for (unsigned i = 0; i <= kSteps; ++i) {
        std::uint64_t product = std::uint64_t{1} << kPoint;
        for (unsigned k = 0; k < roots.size(); ++k) {
            if ((i >> (11 - k) & 1) != 0) {
                product = static_cast<std::uint64_t>(Wide{product} * roots[k] >> kPoint);
            }
        }
        const std::uint64_t rounded = (product + (std::uint64_t{1} << (kPoint - 33))) >> (kPoint - 32);
        falls[i] = static_cast<std::uint32_t>(kTotal - rounded);
    }
    return falls;
}

/// log2(value) * 2**point, rounded; value at least 1.
constexpr std::uint64_t logarithm(std::uint64_t value, unsigned point) {
    constexpr unsigned kMore = 6;
    unsigned whole = 0;
    while (value >> whole > 1) {
        ++whole;
    }
    std::uint64_t mantissa = value << (62 - whole);
    std::uint64_t bits = whole;
    for (unsigned i = 0; i < point + kMore; ++i) {
        const Wide square = Wide{mantissa} * mantissa >> 62;
        const bool carries = square >> 63 != 0;
        bits = bits << 1 | (carries ? 1 : 0);
        mantissa = static_cast<std::uint64_t>(carries ? square >> 1 : square);
    }
    return (bits + (1 << (kMore - 1))) >> kMore;
}

/// Entry i is log2(i) in 2**-16.
constexpr std::array<std::uint32_t, 513> make_logarithms() {
    std::array<std::uint32_t, 513> entries{};
    for (unsigned i = 1; i < entries.size(); ++i) {
        entries[i] = static_cast<std::uint32_t>(logarithm(i, 16));
    }
    return entries;
}

/// Entry i is -log2((kSteps + i) / (2 * kSteps)) in coarse parts of an octave.
constexpr std::array<std::uint32_t, kSteps + 1> make_inverse() {
    std::array<std::uint32_t, kSteps + 1> entries{};
    for (unsigned i = 0; i <= kSteps; ++i) {
        entries[i] = static_cast<std::uint32_t>((12u << kCoarse) - logarithm(kSteps + i, kCoarse));
    }
    return entries;
}

inline constexpr auto kFalls = make_falls();
inline constexpr auto kLogarithms = make_logarithms();
inline constexpr auto kInverse = make_inverse();

/// kTotal * 2**-hazard, `hazard` in coarse parts of an octave, below 32 octaves. Falls strictly up to 10 octaves.
inline std::uint64_t survival(std::uint64_t hazard) {
    const unsigned fraction = hazard & ((1u << kCoarse) - 1);
    const unsigned entry = fraction >> 9;
    const std::uint64_t slope = kFalls[entry + 1] - kFalls[entry];
    const std::uint64_t within = kTotal - kFalls[entry] - (slope * (fraction & 511) >> 9);
    return within >> (hazard >> kCoarse);
}

/// Near the hazard whose survival is `value`, 1 ... kTotal: a place to look from, no more.
inline std::uint64_t near_hazard(std::uint64_t value) {
    const auto below = static_cast<std::uint32_t>(value > 1 ? value - 1 : 1);
    const auto octaves = static_cast<unsigned>(__builtin_clz(below));
    const std::uint32_t mantissa = below << octaves;
    const unsigned entry = mantissa >> 20 & (kSteps - 1);
    const std::uint32_t slope = kInverse[entry] - kInverse[entry + 1];
    return (std::uint64_t{octaves} << kCoarse) + kInverse[entry] -
           (std::uint64_t{slope} * (mantissa >> 9 & 2047) >> 11);
}

/// log2(value) in 2**-16, from the leading nine binary digits; value at least 1.
inline std::int64_t near_logarithm(std::uint64_t value) {
    const int digits = 64 - __builtin_clzll(value);
    const int dropped = digits > 9 ? digits - 9 : 0;
    return (std::int64_t{dropped} << 16) + kLogarithms[value >> dropped];
}

}  // namespace deepreduce::matrix
