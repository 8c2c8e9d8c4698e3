// Sparsifier kernels. V is float or double, P uint32 or uint64.
#pragma once

#include <vector>

#include "compensated.hpp"
#include "magnitude.hpp"
#include "span.hpp"
#include "streams.hpp"

namespace deepreduce {

/// Elements of scratch space that select_topk wants; a few times `kept`, or none where most are kept.
std::size_t topk_scratch(std::size_t numel, std::size_t kept);

/// Fills `kept` with the sorted positions of so many of the largest magnitudes, ties by lower position. Both scratch
/// spans have topk_scratch elements. Makes the one pass over `dense`; false for a residual that was not finite. `count`
/// is how many were found: fewer than asked for only where another thread changes the values meanwhile.
template <typename V, typename P>
bool select_topk(const Compensated<V>& dense, Span<P> kept, Span<P> scratch_positions, Span<Bits<V>> scratch_magnitudes,
                 std::size_t& count);

/// Makes the first `count` of `found` the sorted positions of the magnitudes above a threshold, which is rounded to V;
/// NaN is not above anything. The one kernel that allocates: nobody knows how many there are before they are found.
/// Else as select_topk.
template <typename V, typename P>
bool select_above(const Compensated<V>& dense, double threshold, std::vector<P>& found, std::size_t& count);

/// Position `i` of a sample: one is drawn from each of `count` equal strides of numel elements, at a place that follows
/// no pattern. `count` is at most numel.
std::uint64_t sample_position(std::uint64_t numel, std::uint64_t count, std::uint64_t i);

/// The magnitudes at the positions of a sample, before the pass.
template <typename V>
void take_sample(const Compensated<V>& dense, Span<Bits<V>> sample);

/// What `above` magnitudes of a sample exceed, or fewer where some are equal; 0 where there are no more than these.
/// Reorders the sample.
template <typename V>
V sampled_threshold(Span<Bits<V>> sample, std::uint64_t above);

}  // namespace deepreduce
