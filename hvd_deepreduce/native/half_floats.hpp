// Value codecs `fp16` and `bf16`: FORMAT.md, 5.2 and 5.3. V is float or double.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

/// `out` has two bytes for each value.
template <typename V>
void fp16_encode(Span<const V> values, Span<std::uint8_t> out);

/// Fails unless the payload has the right length for the number kept.
Status fp16_check(Bytes payload, std::uint64_t kept);

/// Fills `values`, whose size is the number kept.
template <typename V>
Status fp16_decode(Bytes payload, Span<V> values);

template <typename V>
void bf16_encode(Span<const V> values, Span<std::uint8_t> out);

Status bf16_check(Bytes payload, std::uint64_t kept);

template <typename V>
Status bf16_decode(Bytes payload, Span<V> values);

}  // namespace deepreduce
