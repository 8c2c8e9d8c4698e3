// Value codec `qsgd`: FORMAT.md, 5.4.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

struct QsgdSettings {
    unsigned bits;
    std::uint64_t bucket;
};

/// Bytes of the payload of so many values.
std::uint64_t qsgd_size(std::uint64_t kept, QsgdSettings settings);

/// `out` has qsgd_size bytes; value i rounds by draw i of `key`.
template <typename V>
void qsgd_encode(Span<const V> values, QsgdSettings settings, std::uint64_t key, Span<std::uint8_t> out);

/// Fails unless the payload has the right length for the number kept.
Status qsgd_check(Bytes payload, std::uint64_t kept, QsgdSettings settings);

/// Fills `values`, whose size is the number kept.
template <typename V>
Status qsgd_decode(Bytes payload, QsgdSettings settings, Span<V> values);

}  // namespace deepreduce
