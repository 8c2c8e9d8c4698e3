// Value codec `quant`: FORMAT.md, 5.10.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

struct QuantSettings {
    double error;
    bool unbiased;
    /// Of the dither, where unbiased.
    std::uint64_t key;
};

/// Where values belong; positions are looked at only when signs are coded by row and column.
template <typename P>
struct QuantPlaces {
    Span<const P> positions;
    /// A zeroed element for each column, or none: then signs cost a bit each.
    Span<std::int8_t> agreed;
};

/// Elements that `agreed` has when so many values of such a matrix are encoded.
std::uint64_t quant_agreed_size(std::uint64_t kept, std::uint64_t rows, std::uint64_t columns);

/// Bytes that no payload exceeds.
std::uint64_t quant_capacity(std::uint64_t kept, std::size_t value_size);

/// Bytes of the payload, which is at the front of `out` (of quant_capacity bytes).
template <typename V, typename P>
std::size_t quant_encode(Span<const V> values, const QuantPlaces<P>& places, const QuantSettings& settings,
                         Span<std::uint8_t> out);

/// Fails unless the payload's head is right and its length can hold so many values; `agreed` becomes the number of
/// elements that decoding needs.
template <typename V>
Status quant_check(Bytes payload, std::uint64_t kept, std::uint64_t rows, std::uint64_t columns, std::uint64_t& agreed);

/// Fills `values`, whose size is the number kept; the payload has passed the check.
template <typename V, typename P>
Status quant_decode(Bytes payload, const QuantPlaces<P>& places, const QuantSettings& settings, Span<V> values);

/// A uniform quantiser of magnitudes from the smallest on: level = floor((magnitude - lowest) / step).
template <typename V>
struct Quantiser {
    bool finite = true;
    V lowest = 0;
    V largest = 0;
    V step = 0;
    /// 256ths of a step from the lower end of a level to what it decodes to.
    std::uint8_t offset = 0;
    /// A power of two that brings magnitudes near 1, where their squares are safe.
    double unit = 1;
};

/// The widest step that keeps to the error, as FORMAT.md says how to look for it.
template <typename V>
Quantiser<V> quant_search(Span<const V> values, const QuantSettings& settings);

}  // namespace deepreduce
