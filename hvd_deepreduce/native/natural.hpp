// Value codec `natural`: FORMAT.md, 5.9.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

/// What a payload says of all its values: how many bits an exponent takes, and the exponent of 1 in them.
struct NaturalRange {
    unsigned bits;
    unsigned lowest;
};

/// The least range that holds the values as rounded; value i rounds by draw i of `key`.
template <typename V>
NaturalRange natural_range(Span<const V> values, std::uint64_t key);

/// Bytes of the payload of so many values.
std::uint64_t natural_size(std::uint64_t kept, NaturalRange range);

/// `out` has natural_size bytes; `range` is that of the same values and key.
template <typename V>
void natural_encode(Span<const V> values, std::uint64_t key, NaturalRange range, Span<std::uint8_t> out);

/// Fails unless the payload has a range that its value type allows, and the right length for the number kept.
template <typename V>
Status natural_check(Bytes payload, std::uint64_t kept);

/// Fills `values`, whose size is the number kept.
template <typename V>
Status natural_decode(Bytes payload, Span<V> values);

}  // namespace deepreduce
