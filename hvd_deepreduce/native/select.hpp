// Sparsifier kernels. V is float or double, P uint32 or uint64.
#pragma once

#include <vector>

#include "magnitude.hpp"
#include "span.hpp"
#include "streams.hpp"

namespace deepreduce {

/// Elements of scratch space that select_topk wants; a few times `kept`, or none where most are kept.
std::size_t topk_scratch(std::size_t numel, std::size_t kept);

/// Fills `kept` with the sorted positions of so many of the largest magnitudes, ties by lower position. Both scratch
/// spans have topk_scratch elements.
template <typename V, typename P>
void select_topk(Span<const V> values, Span<P> kept, Span<P> scratch_positions, Span<Bits<V>> scratch_magnitudes);

/// Makes `found` the sorted positions of the magnitudes above a threshold, which is rounded to V; NaN is not above
/// anything. The one kernel that allocates: nobody knows how many there are before they are found.
template <typename V, typename P>
void select_above(Span<const V> values, double threshold, std::vector<P>& found);

/// Position `i` of a sample: one is drawn from each of `count` equal strides of numel elements, at a place that follows
/// no pattern. `count` is at most numel.
std::uint64_t sample_position(std::uint64_t numel, std::uint64_t count, std::uint64_t i);

/// The magnitudes at the positions of a sample.
template <typename V>
void take_sample(Span<const V> values, Span<Bits<V>> sample);

/// What `above` magnitudes of a sample exceed, or fewer where some are equal; 0 where there are no more than these.
/// Reorders the sample.
template <typename V>
V sampled_threshold(Span<Bits<V>> sample, std::uint64_t above);

}  // namespace deepreduce
