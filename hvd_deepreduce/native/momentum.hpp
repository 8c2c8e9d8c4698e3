// What memories with more than a residual add up. V is float or double.
#pragma once

#include "magnitude.hpp"
#include "span.hpp"

namespace deepreduce {

/// momentum <- factor x momentum + scale x gradient, residual += momentum; false, and both untouched, unless all of it
/// is finite. The sizes are equal.
template <typename V>
bool add_momentum(Span<V> momentum, Span<V> residual, Span<const V> gradient, V factor, V scale);

/// squares += gradient^2, residual += gradient; false, and both untouched, unless all of it is finite.
template <typename V>
bool add_squares(Span<V> squares, Span<V> residual, Span<const V> gradient);

/// The sum of the squares, in binary64.
template <typename V>
double sum_of_squares(Span<const V> values);

/// How many magnitudes exceed a threshold, and by how much together, in binary64.
struct Exceedance {
    std::uint64_t count;
    double sum;
};

template <typename V>
Exceedance exceedance(Span<const V> values, V threshold);

}  // namespace deepreduce
