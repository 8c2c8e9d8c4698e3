// Value codecs `fit_poly` and `fit_dexp`: curves through sorted values. FORMAT.md, 5.11 and 5.12.
#pragma once

#include "double_exponential.hpp"
#include "polynomial.hpp"
#include "sorted_values.hpp"

namespace deepreduce {

/// Upper bound of the bytes of a payload, without the permutation.
template <typename Curve>
std::uint64_t fit_capacity(const Curve& curve, std::uint64_t kept, std::size_t itemsize);

/// Writes curves through sorted values and returns their bytes; `curve_space` has room for as many magnitudes, `out`
/// for fit_capacity bytes.
template <typename Curve, typename V>
std::size_t fit_encode(const Curve& curve, Span<const Ranked<V>> sorted, Span<double> curve_space,
                       Span<std::uint8_t> out);

/// Bytes of what is written where a value is a NaN or an infinity.
constexpr std::size_t kNotFiniteSize = 1;
void fit_encode_not_finite(Span<std::uint8_t> out);

/// Fails unless the curves are allowed and of the right length, and with `permuted` followed by the bytes of a
/// permutation. Then `permutation` is these.
template <typename V, typename Curve>
Status fit_check(const Curve& curve, Bytes payload, std::uint64_t kept, bool permuted, Bytes& permutation);

/// Fills `values` in falling order, from a payload that passed the check.
template <typename Curve, typename V>
void fit_decode(const Curve& curve, Bytes payload, Span<V> values);

/// Whether a payload that passed the check says that a value was a NaN or an infinity; it has no permutation.
bool fit_is_not_finite(Bytes payload);

}  // namespace deepreduce
