#include "dense.hpp"

#include <limits>

#include "compensated.hpp"
#include "magnitude.hpp"
#include "positions.hpp"
#include "streams.hpp"

namespace deepreduce {
namespace {

/// So far ahead a position is fetched: at low density each lies in a cache line of its own.
constexpr std::size_t kAhead = 32;

template <bool kWrite, typename V, typename P, typename Visit>
Status visit_all(Span<V> dense, Span<const P> positions, Visit visit) {
    const Status status = check_inside(positions, dense.size);
    if (!status.ok()) {
        return status;
    }
    for (std::size_t i = 0; i < positions.size; ++i) {
        if (i + kAhead < positions.size) {
            __builtin_prefetch(dense.data + positions[i + kAhead], kWrite);
        }
        visit(dense[positions[i]], i);
    }
    return {};
}

}  // namespace

template <typename V>
bool all_finite(Span<const V> values) {
    return streams::exponents_below_infinity(values, 1);
}

template <typename V>
bool sums_finite(Span<const V> residual, Span<const V> gradient) {
    // Terms below half a step of the largest number can't lift a finite residual over it. So one look at the gradient
    // is enough, and the residual need not come from memory twice.
    constexpr unsigned kTooSmallToOverflow = std::numeric_limits<V>::digits + 2;
    if (streams::exponents_below_infinity(gradient, kTooSmallToOverflow)) {
        return true;
    }
    Bits<V> highest_bits = 0;
    for (std::size_t i = 0; i < gradient.size; ++i) {
        highest_bits |= magnitude(residual[i] + gradient[i]) + FloatBits<V>::kOneExponent;
    }
    return (highest_bits & FloatBits<V>::kSign) == 0;
}

template <typename V>
bool compensate(Span<V> residual, Span<const V> gradient) {
    return sums_finite<V>(residual, gradient) && Compensated<V>(residual, gradient).add_from(0);
}

template <typename V, typename P>
Status gather(Span<const V> dense, Span<const P> positions, Span<V> values) {
    return visit_all<false>(dense, positions, [=](const V& element, std::size_t i) { values[i] = element; });
}

template <typename V, typename P>
Status scatter_add(Span<V> dense, Span<const P> positions, Span<const V> values, double factor) {
    if (factor == 1.0) {
        return visit_all<true>(dense, positions, [=](V& element, std::size_t i) { element += values[i]; });
    }
    return visit_all<true>(dense, positions, [=](V& element, std::size_t i) {
        element += static_cast<V>(static_cast<double>(values[i]) * factor);
    });
}

template <typename V, typename P>
Status subtract_at(Span<V> dense, Span<const P> positions, Span<const V> values) {
    return visit_all<true>(dense, positions, [=](V& element, std::size_t i) { element -= values[i]; });
}

template bool all_finite(Span<const float>);
template bool all_finite(Span<const double>);
template bool sums_finite(Span<const float>, Span<const float>);
template bool sums_finite(Span<const double>, Span<const double>);
template bool compensate(Span<float>, Span<const float>);
template bool compensate(Span<double>, Span<const double>);

template Status gather(Span<const float>, Span<const std::uint32_t>, Span<float>);
template Status gather(Span<const float>, Span<const std::uint64_t>, Span<float>);
template Status gather(Span<const double>, Span<const std::uint32_t>, Span<double>);
template Status gather(Span<const double>, Span<const std::uint64_t>, Span<double>);
template Status scatter_add(Span<float>, Span<const std::uint32_t>, Span<const float>, double);
template Status scatter_add(Span<float>, Span<const std::uint64_t>, Span<const float>, double);
template Status scatter_add(Span<double>, Span<const std::uint32_t>, Span<const double>, double);
template Status scatter_add(Span<double>, Span<const std::uint64_t>, Span<const double>, double);
template Status subtract_at(Span<float>, Span<const std::uint32_t>, Span<const float>);
template Status subtract_at(Span<float>, Span<const std::uint64_t>, Span<const float>);
template Status subtract_at(Span<double>, Span<const std::uint32_t>, Span<const double>);
template Status subtract_at(Span<double>, Span<const std::uint64_t>, Span<const double>);

}  // namespace deepreduce
