// Passes over whole dense gradients, where nearly all the time goes. One dispatch at run time, the same results on
// every machine.
#pragma once

#include "magnitude.hpp"
#include "span.hpp"

namespace deepreduce::streams {

/// Whether every exponent field lies at least `margin` below that of infinity; 1 asks for finite values.
template <typename V>
bool exponents_below_infinity(Span<const V> values, unsigned margin);

/// sums[i] += terms[i], up to a block in which `sums` holds something not finite; returns how many were added.
template <typename V>
std::size_t add_while_finite(Span<V> sums, Span<const V> terms);

/// How many magnitudes are `lowest` or more.
template <typename V>
std::size_t count_from(Span<const V> values, Bits<V> lowest);

/// Magnitudes from `lowest` to `highest`, both included.
template <typename V>
struct Range {
    Bits<V> lowest;
    Bits<V> highest;
};

struct Collected {
    std::size_t count;
    std::size_t next;
    bool finite;
};

/// Collecting needs so much more room than it fills.
constexpr std::size_t kSlack = 64;

/// Appends positions (from `start` on) of magnitudes within the range, and the magnitudes too unless that span is
/// empty. Ends at the end of `values`, or at `next` when less than kSlack room is left.
template <typename V, typename P>
Collected collect(Span<const V> values, std::size_t start, Range<V> range, Span<P> positions, Span<Bits<V>> magnitudes);

/// The same of sums += terms, added in passing up to `next`. The range has no upper bound: what is not finite is
/// collected, too, and found out by it, so `finite` tells whether all sums were.
template <typename V, typename P>
Collected add_and_collect(Span<V> sums, Span<const V> terms, std::size_t start, Range<V> range, Span<P> positions,
                          Span<Bits<V>> magnitudes);

}  // namespace deepreduce::streams
