// Dense gradients: error feedback, and reading and writing at positions. V is float or double, P uint32 or uint64.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

template <typename V>
bool all_finite(Span<const V> values);

/// Whether residual + gradient would be finite throughout. The sizes are equal.
template <typename V>
bool sums_finite(Span<const V> residual, Span<const V> gradient);

/// residual += gradient; false, and residual untouched, if any sum is not finite. The sizes are equal. Only a residual
/// that was not finite to begin with may come back changed, by rounding.
template <typename V>
bool compensate(Span<V> residual, Span<const V> gradient);

/// values[i] = dense[positions[i]]. Like the next two, fails before anything is written if a position lies outside.
template <typename V, typename P>
Status gather(Span<const V> dense, Span<const P> positions, Span<V> values);

/// dense[positions[i]] += values[i] * factor, the product computed in binary64 and rounded to V first.
template <typename V, typename P>
Status scatter_add(Span<V> dense, Span<const P> positions, Span<const V> values, double factor);

/// dense[positions[i]] -= values[i]
template <typename V, typename P>
Status subtract_at(Span<V> dense, Span<const P> positions, Span<const V> values);

}  // namespace deepreduce
