// Value codec `sketch`: FORMAT.md, 5.13.
#pragma once

#include "sorted_values.hpp"

namespace deepreduce {

constexpr unsigned kMostQuantiles = 256;

/// Upper bound of the bytes of a payload.
std::uint64_t sketch_capacity(std::uint64_t kept, unsigned quantiles, std::size_t itemsize);

/// Quantiles are of the values, or with `squares` of the sum of their squares. Writes a payload into `out`, which has
/// room for sketch_capacity bytes, and returns its size. `buckets` has an element for each value; `first` and `second`
/// are for sorting.
template <typename V>
std::size_t sketch_encode(Span<const V> values, unsigned quantiles, bool squares, Span<Ranked<V>> first,
                          Span<Ranked<V>> second, Span<std::uint8_t> buckets, Span<std::uint8_t> out);

/// Fails unless the payload could be long enough for the number kept.
template <typename V>
Status sketch_check(Bytes payload, std::uint64_t kept);

/// Fills `values`, whose size is the number kept.
template <typename V>
Status sketch_decode(Bytes payload, Span<V> values);

}  // namespace deepreduce
