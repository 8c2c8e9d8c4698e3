#include "streams.hpp"

#include <algorithm>

// DEEPREDUCE_PORTABLE leaves out the vector code, so that tests see what other machines run.
#if defined(__x86_64__) && !defined(DEEPREDUCE_PORTABLE)
#include <immintrin.h>
#define DEEPREDUCE_AVX2 __attribute__((target("avx2,bmi")))
#endif
#define DEEPREDUCE_INLINE inline __attribute__((always_inline))

namespace deepreduce::streams {
namespace {

constexpr std::size_t kLine = 64;
/// Bytes fetched ahead of a single stream; without it a pass takes nearly twice as long.
constexpr std::size_t kAhead = 4096;

template <typename V>
constexpr std::size_t kStep = 4 * kLine / sizeof(V);

/// May point beyond the array: a fetch that can't be made is dropped.
template <std::size_t kBytes>
DEEPREDUCE_INLINE void fetch(const void* from, std::size_t ahead) {
    const auto address = reinterpret_cast<std::uintptr_t>(from) + ahead;
    for (std::size_t offset = 0; offset < kBytes; offset += kLine) {
        __builtin_prefetch(reinterpret_cast<const void*>(address + offset));
    }
}

template <typename V>
DEEPREDUCE_INLINE Bits<V> highest_bits(const V* values, std::size_t count, Bits<V> added) {
    Bits<V> bits = 0;
    for (std::size_t i = 0; i < count; ++i) {
        bits |= magnitude(values[i]) + added;
    }
    return bits;
}

template <typename V>
DEEPREDUCE_INLINE bool exponents_body(Span<const V> values, unsigned margin) {
    // Reads from four places in turn: where pages are small, looking up one need not wait for another.
    constexpr std::size_t kPlaces = 4;
    constexpr std::size_t kBetweenTests = 64 * kStep<V>;
    const Bits<V> added = FloatBits<V>::kOneExponent * margin;
    const std::size_t part = values.size / kPlaces / kStep<V> * kStep<V>;
    for (std::size_t i = 0; i < part;) {
        Bits<V> bits = 0;
        for (const std::size_t test = std::min(part, i + kBetweenTests); i < test; i += kStep<V>) {
            for (std::size_t place = 0; place < kPlaces; ++place) {
                const V* from = values.data + place * part + i;
                fetch<kStep<V> * sizeof(V)>(from, kAhead / 2);
                bits |= highest_bits(from, kStep<V>, added);
            }
        }
        if ((bits & FloatBits<V>::kSign) != 0) {
            return false;
        }
    }
    const std::size_t done = kPlaces * part;
    return (highest_bits(values.data + done, values.size - done, added) & FloatBits<V>::kSign) == 0;
}

template <typename V>
DEEPREDUCE_INLINE std::size_t add_body(Span<V> sums, Span<const V> terms) {
    for (std::size_t i = 0; i < sums.size; i += kStep<V>) {
        const std::size_t end = std::min(sums.size, i + kStep<V>);
        fetch<kStep<V> * sizeof(V)>(sums.data + i, kAhead);
        if ((highest_bits(sums.data + i, end - i, FloatBits<V>::kOneExponent) & FloatBits<V>::kSign) != 0) {
            return i;
        }
        for (std::size_t j = i; j < end; ++j) {
            sums[j] += terms[j];
        }
    }
    return sums.size;
}

template <typename V>
DEEPREDUCE_INLINE bool contains(Range<V> range, Bits<V> bits) {
    return bits >= range.lowest && bits <= range.highest;
}

/// Bit i of a hit mask says whether value i of kMask is within the range.
constexpr std::size_t kMask = 32;

template <typename V>
std::uint32_t hits_portable(const V* values, Range<V> range) {
    unsigned any = 0;
    for (std::size_t i = 0; i < kMask; ++i) {
        any |= static_cast<unsigned>(contains(range, magnitude(values[i])));
    }
    if (any == 0) {
        return 0;
    }
    std::uint32_t mask = 0;
    for (std::size_t i = 0; i < kMask; ++i) {
        mask |= std::uint32_t{contains(range, magnitude(values[i]))} << i;
    }
    return mask;
}

template <typename V, typename P, typename Hits>
DEEPREDUCE_INLINE Collected collect_body(Span<const V> values, std::size_t start, Range<V> range, Span<P> positions,
                                         Span<Bits<V>> magnitudes, Hits hits) {
    static_assert(kMask <= kSlack);
    std::size_t count = 0;
    std::size_t i = start;
    // Writes behind what is collected; it counts only where `hit` says so.
    const auto append = [&](std::size_t position, bool hit) __attribute__((always_inline)) {
        positions[count] = static_cast<P>(position);
        if (magnitudes.size != 0) {
            magnitudes[count] = magnitude(values[position]);
        }
        count += hit;
    };
    const auto append_lowest = [&](std::uint32_t& mask) __attribute__((always_inline)) {
        append(i + static_cast<unsigned>(__builtin_ctz(mask | 0x80000000u)), mask != 0);
        mask &= mask - 1;
    };
    for (; values.size - i >= kMask; i += kMask) {
        fetch<kMask * sizeof(V)>(values.data + i, kAhead);
        if (positions.size - count < kSlack) {
            return {count, i};
        }
        std::uint32_t mask = hits(values.data + i, range);
        // Most masks hold up to two hits, and no branch could foresee whether none, one or two.
        append_lowest(mask);
        append_lowest(mask);
        while (mask != 0) {
            append_lowest(mask);
        }
    }
    if (positions.size - count < kSlack) {
        return {count, i};
    }
    for (; i < values.size; ++i) {
        if (contains(range, magnitude(values[i]))) {
            append(i, true);
        }
    }
    return {count, i};
}

#ifdef DEEPREDUCE_AVX2

/// In half the time of what compilers make of hits_portable (select_above in tests/bench/native_kernels.py).
DEEPREDUCE_AVX2 inline std::uint32_t hits_avx2(const float* values, Range<float> range) {
    const __m256i sign = _mm256_set1_epi32(static_cast<int>(FloatBits<float>::kSign));
    const __m256i below = _mm256_set1_epi32(static_cast<int>(range.lowest) - 1);
    const __m256i highest = _mm256_set1_epi32(static_cast<int>(range.highest));
    std::uint32_t mask = 0;
    for (unsigned i = 0; i < kMask; i += 8) {
        const __m256i loaded = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
        const __m256i bits = _mm256_andnot_si256(sign, loaded);
        const __m256i within = _mm256_andnot_si256(_mm256_cmpgt_epi32(bits, highest), _mm256_cmpgt_epi32(bits, below));
        mask |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(within))) << i;
    }
    return mask;
}

DEEPREDUCE_AVX2 inline std::uint32_t hits_avx2(const double* values, Range<double> range) {
    const __m256i sign = _mm256_set1_epi64x(static_cast<long long>(FloatBits<double>::kSign));
    const __m256i below = _mm256_set1_epi64x(static_cast<long long>(range.lowest) - 1);
    const __m256i highest = _mm256_set1_epi64x(static_cast<long long>(range.highest));
    std::uint32_t mask = 0;
    for (unsigned i = 0; i < kMask; i += 4) {
        const __m256i loaded = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
        const __m256i bits = _mm256_andnot_si256(sign, loaded);
        const __m256i within = _mm256_andnot_si256(_mm256_cmpgt_epi64(bits, highest), _mm256_cmpgt_epi64(bits, below));
        mask |= static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(within))) << i;
    }
    return mask;
}

template <typename V>
DEEPREDUCE_AVX2 bool exponents_avx2(Span<const V> values, unsigned margin) {
    return exponents_body(values, margin);
}

template <typename V>
DEEPREDUCE_AVX2 std::size_t add_avx2(Span<V> sums, Span<const V> terms) {
    return add_body(sums, terms);
}

template <typename V, typename P>
DEEPREDUCE_AVX2 Collected collect_avx2(Span<const V> values, std::size_t start, Range<V> range, Span<P> positions,
                                       Span<Bits<V>> magnitudes) {
    return collect_body(values, start, range, positions, magnitudes,
                        [](const V* from, Range<V> within) DEEPREDUCE_AVX2 { return hits_avx2(from, within); });
}

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi"); }

#endif

}  // namespace

template <typename V>
bool exponents_below_infinity(Span<const V> values, unsigned margin) {
#ifdef DEEPREDUCE_AVX2
    if (has_avx2()) {
        return exponents_avx2(values, margin);
    }
#endif
    return exponents_body(values, margin);
}

template <typename V>
std::size_t add_while_finite(Span<V> sums, Span<const V> terms) {
#ifdef DEEPREDUCE_AVX2
    if (has_avx2()) {
        return add_avx2(sums, terms);
    }
#endif
    return add_body(sums, terms);
}

template <typename V>
std::size_t count_from(Span<const V> values, Bits<V> lowest) {
    constexpr std::size_t kFitsCounter = std::size_t{1} << 20;
    // Vector units compare signed integers, and magnitudes are none the worse for it.
    using Signed = std::make_signed_t<Bits<V>>;
    std::size_t total = 0;
    std::size_t i = 0;
    while (i < values.size) {
        Bits<V> count = 0;
        for (const std::size_t end = std::min(values.size, i + kFitsCounter); i < end;) {
            fetch<kStep<V> * sizeof(V)>(values.data + i, kAhead);
            for (const std::size_t step = std::min(end, i + kStep<V>); i < step; ++i) {
                count += static_cast<Signed>(magnitude(values[i])) >= static_cast<Signed>(lowest);
            }
        }
        total += count;
    }
    return total;
}

template <typename V, typename P>
Collected collect(Span<const V> values, std::size_t start, Range<V> range, Span<P> positions,
                  Span<Bits<V>> magnitudes) {
#ifdef DEEPREDUCE_AVX2
    if (has_avx2()) {
        return collect_avx2(values, start, range, positions, magnitudes);
    }
#endif
    return collect_body(values, start, range, positions, magnitudes, hits_portable<V>);
}

template bool exponents_below_infinity(Span<const float>, unsigned);
template bool exponents_below_infinity(Span<const double>, unsigned);
template std::size_t add_while_finite(Span<float>, Span<const float>);
template std::size_t add_while_finite(Span<double>, Span<const double>);
template std::size_t count_from(Span<const float>, Bits<float>);
template std::size_t count_from(Span<const double>, Bits<double>);
template Collected collect(Span<const float>, std::size_t, Range<float>, Span<std::uint32_t>, Span<Bits<float>>);
template Collected collect(Span<const float>, std::size_t, Range<float>, Span<std::uint64_t>, Span<Bits<float>>);
template Collected collect(Span<const double>, std::size_t, Range<double>, Span<std::uint32_t>, Span<Bits<double>>);
template Collected collect(Span<const double>, std::size_t, Range<double>, Span<std::uint64_t>, Span<Bits<double>>);

}  // namespace deepreduce::streams
