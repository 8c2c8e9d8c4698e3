#include "select.hpp"

#include <cmath>

#include "random.hpp"
#include "rank.hpp"

namespace deepreduce {
namespace {

constexpr std::size_t kSample = 32768;
/// Up to here a sample would not be smaller than the whole.
constexpr std::size_t kSmall = 4096;

struct Plan {
    /// Magnitudes looked at, or 0: all are candidates.
    std::size_t sample;
    /// The guess is the so many-th largest of the sample.
    std::size_t rank;
    /// Room for candidates; 0: no guess is made.
    std::size_t room;
};

/// Adds four standard deviations, so that a guess fails on one gradient in 10000 at most unless its order is adversarial.
std::size_t safely_above(double expected) { return static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 8); }

Plan plan(std::size_t numel, std::size_t kept) {
    if (numel <= kSmall) {
        return {0, 0, numel + streams::kSlack};
    }
    if (kept > numel / 4) {
        return {0, 0, 0};
    }
    const std::size_t sample = std::min(kSample, numel / 8);
    const double share = static_cast<double>(sample) / static_cast<double>(numel);
    const std::size_t rank = safely_above(static_cast<double>(kept) * share);
    const auto candidates = static_cast<double>(safely_above(static_cast<double>(rank))) / share;
    return {sample, rank, std::min(numel, static_cast<std::size_t>(candidates)) + streams::kSlack};
}

/// A magnitude that about plan.rank of the sample reach. One value is drawn from each of equal strides, at a place that does not
/// follow a pattern in the gradient. Uses `sample` as scratch space.
template <typename V>
Bits<V> guess_lowest(Span<const V> values, const Plan& plan, Span<Bits<V>> sample) {
    if (plan.rank >= plan.sample) {
        return 0;
    }
    const std::size_t stride = values.size / plan.sample;
    for (std::size_t i = 0; i < plan.sample; ++i) {
        sample[i] = magnitude(values[i * stride + random_u64(0, i) % stride]);
    }
    return find_cut<Bits<V>>(sample.part(0, plan.sample), plan.rank).limit;
}

/// Writes the positions that a cut keeps, in order.
template <typename P, typename B, typename MagnitudeAt, typename PositionAt>
void apply(Cut<B> cut, Span<P> kept, MagnitudeAt magnitude_at, PositionAt position_at) {
    std::size_t count = 0;
    for (std::size_t i = 0; count < kept.size; ++i) {
        const B bits = magnitude_at(i);
        const bool tied = bits == cut.limit && cut.ties != 0;
        kept[count] = static_cast<P>(position_at(i));
        count += bits > cut.limit || tied;
        cut.ties -= tied;
    }
}

}  // namespace

std::size_t topk_scratch(std::size_t numel, std::size_t kept) {
    const Plan sizes = plan(numel, kept);
    return std::max(sizes.room, sizes.sample);
}

template <typename V, typename P>
void select_topk(Span<const V> values, Span<P> kept, Span<P> scratch_positions, Span<Bits<V>> scratch_magnitudes) {
    if (kept.size == 0) {
        return;
    }
    const Plan sizes = plan(values.size, kept.size);
    if (sizes.room != 0) {
        const streams::Range<V> range{guess_lowest(values, sizes, scratch_magnitudes),
                                      static_cast<Bits<V>>(~FloatBits<V>::kSign)};
        const auto positions = scratch_positions.part(0, sizes.room);
        const auto found = streams::collect(values, 0, range, positions, scratch_magnitudes);
        if (found.next == values.size && found.count >= kept.size) {
            const auto magnitudes = scratch_magnitudes.part(0, found.count);
            apply(
                find_cut<Bits<V>>(magnitudes, kept.size), kept, [=](std::size_t i) { return magnitudes[i]; },
                [=](std::size_t i) { return positions[i]; });
            return;
        }
    }
    apply(
        find_cut(values, kept.size), kept, [=](std::size_t i) { return magnitude(values[i]); },
        [](std::size_t i) { return i; });
}

template <typename V>
streams::Range<V> range_above(double threshold) {
    const V limit = static_cast<V>(threshold);
    const Bits<V> infinity = FloatBits<V>::kInfinity;
    if (std::isnan(limit)) {
        return {infinity, 0};
    }
    return {limit < 0 ? 0 : magnitude(limit) + 1, infinity};
}

template void select_topk(Span<const float>, Span<std::uint32_t>, Span<std::uint32_t>, Span<Bits<float>>);
template void select_topk(Span<const float>, Span<std::uint64_t>, Span<std::uint64_t>, Span<Bits<float>>);
template void select_topk(Span<const double>, Span<std::uint32_t>, Span<std::uint32_t>, Span<Bits<double>>);
template void select_topk(Span<const double>, Span<std::uint64_t>, Span<std::uint64_t>, Span<Bits<double>>);
template streams::Range<float> range_above(double);
template streams::Range<double> range_above(double);

}  // namespace deepreduce
