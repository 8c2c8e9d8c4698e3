#include "momentum.hpp"

#include <array>
#include <cmath>

namespace deepreduce {
namespace {

/// A single sum would wait for itself at every element.
constexpr std::size_t kSums = 16;

template <typename V, typename Term>
double sum(Span<const V> values, Term term) {
    std::array<double, kSums> sums{};
    std::size_t i = 0;
    for (; values.size - i >= kSums; i += kSums) {
        for (std::size_t k = 0; k < kSums; ++k) {
            sums[k] += term(values[i + k]);
        }
    }
    for (; i < values.size; ++i) {
        sums[0] += term(values[i]);
    }
    double total = 0;
    for (const double one : sums) {
        total += one;
    }
    return total;
}

/// Looks at all that would be written before anything is.
template <typename V, typename First, typename Second>
bool update_both(Span<V> first, Span<V> second, First make_first, Second make_second) {
    Bits<V> highest_bits = 0;
    for (std::size_t i = 0; i < first.size; ++i) {
        const V made = make_first(i);
        highest_bits |= (magnitude(made) + FloatBits<V>::kOneExponent) |
                        (magnitude(make_second(i, made)) + FloatBits<V>::kOneExponent);
    }
    if ((highest_bits & FloatBits<V>::kSign) != 0) {
        return false;
    }
    for (std::size_t i = 0; i < first.size; ++i) {
        first[i] = make_first(i);
        second[i] = make_second(i, first[i]);
    }
    return true;
}

}  // namespace

template <typename V>
bool add_momentum(Span<V> momentum, Span<V> residual, Span<const V> gradient, V factor, V scale) {
    return update_both(
        momentum, residual, [=](std::size_t i) { return factor * momentum[i] + scale * gradient[i]; },
        [=](std::size_t i, V made) { return residual[i] + made; });
}

template <typename V>
bool add_squares(Span<V> squares, Span<V> residual, Span<const V> gradient) {
    return update_both(
        squares, residual, [=](std::size_t i) { return squares[i] + gradient[i] * gradient[i]; },
        [=](std::size_t i, V) { return residual[i] + gradient[i]; });
}

template <typename V>
double sum_of_squares(Span<const V> values) {
    return sum(values, [](V value) { return static_cast<double>(value) * static_cast<double>(value); });
}

template <typename V>
Exceedance exceedance(Span<const V> values, V threshold) {
    const double excess = sum(values, [=](V value) {
        const V size = std::abs(value);
        return size > threshold ? static_cast<double>(size) - static_cast<double>(threshold) : 0.0;
    });
    const double count = sum(values, [=](V value) { return std::abs(value) > threshold ? 1.0 : 0.0; });
    return {static_cast<std::uint64_t>(count), excess};
}

template bool add_momentum(Span<float>, Span<float>, Span<const float>, float, float);
template bool add_momentum(Span<double>, Span<double>, Span<const double>, double, double);
template bool add_squares(Span<float>, Span<float>, Span<const float>);
template bool add_squares(Span<double>, Span<double>, Span<const double>);
template double sum_of_squares(Span<const float>);
template double sum_of_squares(Span<const double>);
template Exceedance exceedance(Span<const float>, float);
template Exceedance exceedance(Span<const double>, double);

}  // namespace deepreduce
