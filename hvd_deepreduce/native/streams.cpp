#include "streams.hpp"

#include <algorithm>

#include "streams_dispatch.hpp"

namespace deepreduce::streams {
namespace {

template <typename V>
constexpr std::size_t kStep = 4 * kLine / sizeof(V);

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

#ifdef DEEPREDUCE_AVX2

template <typename V>
DEEPREDUCE_AVX2 bool exponents_avx2(Span<const V> values, unsigned margin) {
    return exponents_body(values, margin);
}

template <typename V>
DEEPREDUCE_AVX2 std::size_t add_while_finite_avx2(Span<V> sums, Span<const V> terms) {
    return add_body(sums, terms);
}

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
        return add_while_finite_avx2(sums, terms);
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

template bool exponents_below_infinity(Span<const float>, unsigned);
template bool exponents_below_infinity(Span<const double>, unsigned);
template std::size_t add_while_finite(Span<float>, Span<const float>);
template std::size_t add_while_finite(Span<double>, Span<const double>);
template std::size_t count_from(Span<const float>, Bits<float>);
template std::size_t count_from(Span<const double>, Bits<double>);

}  // namespace deepreduce::streams
