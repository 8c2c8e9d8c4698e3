// Value codec `terngrad`: FORMAT.md, 5.8.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

/// Bytes of the payload of so many values.
std::uint64_t terngrad_size(std::uint64_t kept, std::size_t itemsize);

/// `out` has terngrad_size bytes; value i rounds by draw i of `key`.
template <typename V>
void terngrad_encode(Span<const V> values, std::uint64_t key, Span<std::uint8_t> out);

/// Fails unless the payload has the right length for the number kept.
Status terngrad_check(Bytes payload, std::uint64_t kept, std::size_t itemsize);

/// Fills `values`, whose size is the number kept.
template <typename V>
Status terngrad_decode(Bytes payload, Span<V> values);

}  // namespace deepreduce
