#include <algorithm>

#include "streams.hpp"
#include "streams_dispatch.hpp"

namespace deepreduce::streams {
namespace {

template <typename V>
DEEPREDUCE_INLINE bool contains(Range<V> range, Bits<V> bits) {
    return bits >= range.lowest && bits <= range.highest;
}

/// Bit i of a hit mask says whether value i of kMask is within the range.
constexpr std::size_t kMask = 32;

template <typename V>
DEEPREDUCE_INLINE std::uint32_t hits_portable(const V* values, Range<V> range) {
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

/// What collecting has found so far.
template <typename V, typename P>
class Finds {
  public:
    DEEPREDUCE_INLINE Finds(Span<P> positions, Span<Bits<V>> magnitudes)
        : positions_(positions), magnitudes_(magnitudes) {}

    DEEPREDUCE_INLINE bool has_room() const { return positions_.size - count_ >= kSlack; }
    DEEPREDUCE_INLINE Collected end(std::size_t next) const {
        return {count_, next, (highest_ & FloatBits<V>::kSign) == 0};
    }

    /// Writes behind what is collected; it counts only where `hit` says so.
    DEEPREDUCE_INLINE void append(std::size_t position, V value, bool hit) {
        const Bits<V> bits = magnitude(value);
        positions_[count_] = static_cast<P>(position);
        if (magnitudes_.size != 0) {
            magnitudes_[count_] = bits;
        }
        highest_ |= bits + FloatBits<V>::kOneExponent;
        count_ += hit;
    }

    DEEPREDUCE_INLINE void append_all(std::uint32_t mask, const V* values, std::size_t first) {
        const auto append_lowest = [&]() __attribute__((always_inline)) {
            const auto lowest = static_cast<unsigned>(__builtin_ctz(mask | 0x80000000u));
            append(first + lowest, values[lowest], mask != 0);
            mask &= mask - 1;
        };
        // Most masks hold up to two hits, and no branch could foresee whether none, one or two.
        append_lowest();
        append_lowest();
        while (mask != 0) {
            append_lowest();
        }
    }

  private:
    Span<P> positions_;
    Span<Bits<V>> magnitudes_;
    std::size_t count_ = 0;
    Bits<V> highest_ = 0;
};

template <typename V, typename P, typename Hits>
DEEPREDUCE_INLINE Collected collect_body(Span<const V> values, std::size_t start, Range<V> range, Span<P> positions,
                                         Span<Bits<V>> magnitudes, Hits hits) {
    static_assert(kMask <= kSlack);
    Finds<V, P> finds(positions, magnitudes);
    std::size_t i = start;
    for (; values.size - i >= kMask && finds.has_room(); i += kMask) {
        fetch<kMask * sizeof(V)>(values.data + i, kAhead);
        finds.append_all(hits(values.data + i, range), values.data + i, i);
    }
    if (finds.has_room()) {
        for (; i < values.size; ++i) {
            if (contains(range, magnitude(values[i]))) {
                finds.append(i, values[i], true);
            }
        }
    }
    return {finds.end(i).count, i, true};
}

template <typename V>
DEEPREDUCE_INLINE std::uint32_t add_portable(V* sums, const V* terms, Range<V> range) {
    for (std::size_t i = 0; i < kMask; ++i) {
        sums[i] += terms[i];
    }
    return hits_portable(sums, range);
}

/// What is not finite is within every range here, so it need not be looked for.
template <typename V, typename P, typename Add>
DEEPREDUCE_INLINE Collected add_and_collect_body(Span<V> sums, Span<const V> terms, std::size_t start, Range<V> range,
                                                 Span<P> positions, Span<Bits<V>> magnitudes, Add add) {
    Finds<V, P> finds(positions, magnitudes);
    std::size_t i = start;
    for (; sums.size - i >= kMask && finds.has_room(); i += kMask) {
        fetch<kMask * sizeof(V)>(sums.data + i, kAhead);
        fetch<kMask * sizeof(V)>(terms.data + i, kAhead);
        finds.append_all(add(sums.data + i, terms.data + i, range), sums.data + i, i);
    }
    if (finds.has_room()) {
        for (; i < sums.size; ++i) {
            sums[i] += terms[i];
            if (contains(range, magnitude(sums[i]))) {
                finds.append(i, sums[i], true);
            }
        }
    }
    return finds.end(i);
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

/// Adds, and tells which sums have a magnitude of range.lowest or more.
DEEPREDUCE_AVX2 inline std::uint32_t add_avx2(float* sums, const float* terms, Range<float> range) {
    const __m256i sign = _mm256_set1_epi32(static_cast<int>(FloatBits<float>::kSign));
    const __m256i below = _mm256_set1_epi32(static_cast<int>(range.lowest) - 1);
    std::uint32_t mask = 0;
    for (unsigned i = 0; i < kMask; i += 8) {
        const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(sums + i), _mm256_loadu_ps(terms + i));
        _mm256_storeu_ps(sums + i, sum);
        const __m256i bits = _mm256_andnot_si256(sign, _mm256_castps_si256(sum));
        const __m256i within = _mm256_cmpgt_epi32(bits, below);
        mask |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(within))) << i;
    }
    return mask;
}

DEEPREDUCE_AVX2 inline std::uint32_t add_avx2(double* sums, const double* terms, Range<double> range) {
    const __m256i sign = _mm256_set1_epi64x(static_cast<long long>(FloatBits<double>::kSign));
    const __m256i below = _mm256_set1_epi64x(static_cast<long long>(range.lowest) - 1);
    std::uint32_t mask = 0;
    for (unsigned i = 0; i < kMask; i += 4) {
        const __m256d sum = _mm256_add_pd(_mm256_loadu_pd(sums + i), _mm256_loadu_pd(terms + i));
        _mm256_storeu_pd(sums + i, sum);
        const __m256i bits = _mm256_andnot_si256(sign, _mm256_castpd_si256(sum));
        const __m256i within = _mm256_cmpgt_epi64(bits, below);
        mask |= static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(within))) << i;
    }
    return mask;
}

template <typename V, typename P>
DEEPREDUCE_AVX2 Collected collect_avx2(Span<const V> values, std::size_t start, Range<V> range, Span<P> positions,
                                       Span<Bits<V>> magnitudes) {
    return collect_body(values, start, range, positions, magnitudes,
                        [](const V* from, Range<V> within) DEEPREDUCE_AVX2 { return hits_avx2(from, within); });
}

template <typename V, typename P>
DEEPREDUCE_AVX2 Collected add_and_collect_avx2(Span<V> sums, Span<const V> terms, std::size_t start, Range<V> range,
                                               Span<P> positions, Span<Bits<V>> magnitudes) {
    return add_and_collect_body(sums, terms, start, range, positions, magnitudes,
                                [](V* to, const V* from, Range<V> within)
                                    DEEPREDUCE_AVX2 { return add_avx2(to, from, within); });
}

#endif

}  // namespace

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

template <typename V, typename P>
Collected add_and_collect(Span<V> sums, Span<const V> terms, std::size_t start, Range<V> range, Span<P> positions,
                          Span<Bits<V>> magnitudes) {
    const Range<V> open{std::min(range.lowest, FloatBits<V>::kInfinity), static_cast<Bits<V>>(~FloatBits<V>::kSign)};
#ifdef DEEPREDUCE_AVX2
    if (has_avx2()) {
        return add_and_collect_avx2(sums, terms, start, open, positions, magnitudes);
    }
#endif
    return add_and_collect_body(sums, terms, start, open, positions, magnitudes, add_portable<V>);
}

template Collected collect(Span<const float>, std::size_t, Range<float>, Span<std::uint32_t>, Span<Bits<float>>);
template Collected add_and_collect(Span<float>, Span<const float>, std::size_t, Range<float>, Span<std::uint32_t>,
                                   Span<Bits<float>>);
template Collected collect(Span<const float>, std::size_t, Range<float>, Span<std::uint64_t>, Span<Bits<float>>);
template Collected add_and_collect(Span<float>, Span<const float>, std::size_t, Range<float>, Span<std::uint64_t>,
                                   Span<Bits<float>>);
template Collected collect(Span<const double>, std::size_t, Range<double>, Span<std::uint32_t>, Span<Bits<double>>);
template Collected add_and_collect(Span<double>, Span<const double>, std::size_t, Range<double>, Span<std::uint32_t>,
                                   Span<Bits<double>>);
template Collected collect(Span<const double>, std::size_t, Range<double>, Span<std::uint64_t>, Span<Bits<double>>);
template Collected add_and_collect(Span<double>, Span<const double>, std::size_t, Range<double>, Span<std::uint64_t>,
                                   Span<Bits<double>>);

}  // namespace deepreduce::streams
