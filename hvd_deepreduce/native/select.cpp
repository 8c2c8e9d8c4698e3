#include "select.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "random.hpp"
#include "rank.hpp"

namespace deepreduce {
namespace {

constexpr std::size_t kSample = 32768;
/// Up to here a sample would not be smaller than the whole.
constexpr std::size_t kSmall = 512;

/// Between which places of a sorted sample the cut is looked for.
struct Plan {
    std::size_t sample = 0;
    /// The guess from below is the so many-th largest of the sample, or 0.
    std::size_t rank_low = 0;
    /// The guess from above likewise; 0: there is none, and all candidates in one list answer without a second pass.
    std::size_t rank_high = 0;
    /// Room for candidates.
    std::size_t room = 0;
};

/// Four standard deviations: a guess fails on one gradient in 10000 at most, unless its order is made to fool it.
double spread(double expected) { return 4 * std::sqrt(expected) + 8; }

Plan plan(std::size_t numel, std::size_t kept) {
    if (numel <= kSmall) {
        return {0, 0, 0, numel + streams::kSlack};
    }
    Plan plan;
    plan.sample = std::min(kSample, numel / 16);
    const double share = static_cast<double>(plan.sample) / static_cast<double>(numel);
    const double expected = static_cast<double>(kept) * share;
    plan.rank_low = static_cast<std::size_t>(expected + spread(expected));
    if (kept > numel / 8) {
        plan.rank_high = static_cast<std::size_t>(std::max(0.0, expected - spread(expected)));
    }
    const auto between = static_cast<double>(std::min(plan.rank_low, plan.sample) - plan.rank_high);
    const auto candidates = static_cast<std::size_t>((between + spread(between)) / share);
    plan.room = std::max(plan.sample, std::min(numel, candidates) + streams::kSlack);
    return plan;
}

/// Uses `scratch` for the sample.
template <typename V>
streams::Range<V> guess(const Compensated<V>& dense, const Plan& plan, Span<Bits<V>> scratch) {
    streams::Range<V> range{0, static_cast<Bits<V>>(~FloatBits<V>::kSign)};
    const auto sample = scratch.part(0, plan.sample);
    take_sample(dense, sample);
    if (plan.rank_low < sample.size) {
        range.lowest = find_cut<Bits<V>>(sample, plan.rank_low).limit;
    }
    if (plan.rank_high > 0) {
        range.highest = find_cut<Bits<V>>(sample, plan.rank_high).limit;
    }
    return range;
}

/// Writes the positions that a cut keeps of `size` candidates, in order, and returns how many there are.
template <typename P, typename B, typename MagnitudeAt, typename PositionAt>
std::size_t apply(const Cut<B>& cut, Span<P> kept, std::size_t size, MagnitudeAt magnitude_at, PositionAt position_at) {
    const B limit = cut.limit;
    std::uint64_t ties = cut.ties;
    std::size_t count = 0;
    for (std::size_t i = 0; i < size && count < kept.size; ++i) {
        const B bits = magnitude_at(i);
        kept[count] = static_cast<P>(position_at(i));
        // Ties are rare and foreseen as such; what is larger is not, and so takes no branch.
        if (bits == limit) {
            count += ties != 0;
            ties -= ties != 0;
        } else {
            count += bits > limit;
        }
    }
    return count;
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

}  // namespace

std::uint64_t sample_position(std::uint64_t numel, std::uint64_t count, std::uint64_t i) {
    const std::uint64_t stride = numel / count;
    return i * stride + random_u64(0, i) % stride;
}

template <typename V>
void take_sample(const Compensated<V>& dense, Span<Bits<V>> sample) {
    for (std::size_t i = 0; i < sample.size; ++i) {
        sample[i] = magnitude(dense[sample_position(dense.size(), sample.size, i)]);
    }
}

template <typename V>
V sampled_threshold(Span<Bits<V>> sample, std::uint64_t above) {
    if (above >= sample.size) {
        return 0;
    }
    std::nth_element(sample.begin(), sample.begin() + above, sample.end(), std::greater<>());
    return from_magnitude<V>(sample[above]);
}

std::size_t topk_scratch(std::size_t numel, std::size_t kept) { return plan(numel, kept).room; }

template <typename V, typename P>
bool select_topk(const Compensated<V>& dense, Span<P> kept, Span<P> scratch_positions, Span<Bits<V>> scratch_magnitudes,
                 std::size_t& count) {
    count = 0;
    const Span<const V> values = dense.values();
    const auto cut_all = [&](Cut<Bits<V>> cut) {
        count = apply(
            cut, kept, values.size, [=](std::size_t i) { return magnitude(values[i]); },
            [](std::size_t i) { return i; });
    };
    const Plan sizes = plan(values.size, kept.size);
    const auto range = guess(dense, sizes, scratch_magnitudes);
    const bool bounded = sizes.rank_high > 0;
    // Collecting within two bounds goes over complete values.
    if (bounded && !dense.add_from(0)) {
        return false;
    }
    const auto found = bounded ? streams::collect(values, 0, range, scratch_positions, scratch_magnitudes)
                               : dense.pass(0, range, scratch_positions, scratch_magnitudes);
    if (!bounded && !(found.finite && dense.add_from(found.next))) {
        return false;
    }
    if (kept.size == 0) {
        return true;
    }
    const std::size_t above = bounded ? streams::count_from(values, range.highest + 1) : 0;
    if (found.next == values.size && above < kept.size && kept.size <= above + found.count) {
        const auto magnitudes = scratch_magnitudes.part(0, found.count);
        const auto cut = find_cut<Bits<V>>(magnitudes, kept.size - above);
        if (bounded) {
            cut_all(cut);
        } else {
            count = apply(
                cut, kept, found.count, [=](std::size_t i) { return magnitudes[i]; },
                [=](std::size_t i) { return scratch_positions[i]; });
        }
        return true;
    }
    // Where many are equal, the guess is more often than not the cut itself.
    const std::size_t larger = streams::count_from(values, range.lowest + 1);
    if (larger < kept.size && kept.size <= streams::count_from(values, range.lowest)) {
        cut_all({range.lowest, kept.size - larger});
    } else {
        cut_all(find_cut(values, kept.size));
    }
    return true;
}

template <typename V, typename P>
bool select_above(const Compensated<V>& dense, double threshold, std::vector<P>& found, std::size_t& count) {
    const auto range = range_above<V>(threshold);
    const std::size_t numel = dense.size();
    count = 0;
    found.resize(std::max(found.size(), numel / 32 + 2 * streams::kSlack));
    for (std::size_t next = 0;;) {
        const Span<P> room{found.data() + count, found.size() - count};
        const auto part = dense.pass(next, range, room, Span<Bits<V>>{});
        count += part.count;
        next = part.next;
        if (!part.finite || next == numel) {
            return part.finite;
        }
        // As much again as the share so far asks for.
        const std::size_t share = count / (next / 64 + 1) * (numel - next) / 64;
        const std::size_t more = std::min(numel - next, share + found.size() / 2) + streams::kSlack;
        found.resize(std::max(found.size(), count + more));
    }
}

template void take_sample(const Compensated<float>&, Span<Bits<float>>);
template void take_sample(const Compensated<double>&, Span<Bits<double>>);
template float sampled_threshold(Span<Bits<float>>, std::uint64_t);
template double sampled_threshold(Span<Bits<double>>, std::uint64_t);
template bool select_topk(const Compensated<float>&, Span<std::uint32_t>, Span<std::uint32_t>, Span<Bits<float>>,
                          std::size_t&);
template bool select_topk(const Compensated<float>&, Span<std::uint64_t>, Span<std::uint64_t>, Span<Bits<float>>,
                          std::size_t&);
template bool select_topk(const Compensated<double>&, Span<std::uint32_t>, Span<std::uint32_t>, Span<Bits<double>>,
                          std::size_t&);
template bool select_topk(const Compensated<double>&, Span<std::uint64_t>, Span<std::uint64_t>, Span<Bits<double>>,
                          std::size_t&);
template bool select_above(const Compensated<float>&, double, std::vector<std::uint32_t>&, std::size_t&);
template bool select_above(const Compensated<float>&, double, std::vector<std::uint64_t>&, std::size_t&);
template bool select_above(const Compensated<double>&, double, std::vector<std::uint32_t>&, std::size_t&);
template bool select_above(const Compensated<double>&, double, std::vector<std::uint64_t>&, std::size_t&);

}  // namespace deepreduce
