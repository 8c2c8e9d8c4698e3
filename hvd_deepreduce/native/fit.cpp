#include "fit.hpp"

#include <algorithm>
#include <limits>

#include "fit_bytes.hpp"

namespace deepreduce {
namespace {

constexpr std::uint8_t kCurves = 0;
constexpr std::uint8_t kNotFinite = 1;
/// The form, and how many values are not negative.
constexpr std::size_t kHead = 1 + kVarintBytes;

/// The values of one sign: how many, and their largest and smallest magnitude.
template <typename V>
struct Side {
    std::uint64_t count;
    V highest;
    V lowest;
};

template <typename V>
Side<V> take_side(ByteTaker& taker, std::uint64_t count) {
    const V highest = taker.take<V>();
    const V lowest = taker.take<V>();
    const bool allowed = !std::signbit(highest) && !std::signbit(lowest) && std::isfinite(highest) && lowest <= highest;
    if (taker.ok() && !(allowed && (count > 1 || lowest == highest))) {
        taker.corrupt("magnitudes of {} values are none from a lowest to a highest", count);
    }
    return {count, highest, lowest};
}

template <typename Curve, typename V>
void put_side(const Curve& curve, ByteWriter& writer, Span<const Ranked<V>> sorted, bool negative,
              Span<double> magnitudes) {
    const std::size_t count = sorted.size;
    if (count == 0) {
        return;
    }
    const auto size_at = [&](std::size_t i) {
        return std::abs(value_of_key<V>(sorted[negative ? count - 1 - i : i].key));
    };
    const V highest = size_at(0);
    const V lowest = size_at(count - 1);
    writer.put(highest);
    writer.put(lowest);
    if (highest == lowest) {
        return;
    }
    const double scale = static_cast<double>(highest);
    for (std::size_t i = 0; i < count; ++i) {
        magnitudes[i] = static_cast<double>(size_at(i)) / scale;
    }
    curve.encode(Span<const double>(magnitudes.part(0, count)), static_cast<double>(lowest) / scale, writer);
}

/// Value i of a side as the page has it.
template <typename V>
V value_at(const Side<V>& side, double height) {
    const double size = height * static_cast<double>(side.highest);
    const double below = std::min(size, static_cast<double>(side.highest));
    return static_cast<V>(std::max(static_cast<double>(side.lowest), below));
}

template <typename Curve, typename V>
void fill_side(const Curve& curve, ByteTaker& taker, bool negative, Span<V> values) {
    if (values.size == 0) {
        return;
    }
    const Side<V> side = take_side<V>(taker, values.size);
    if (side.highest == side.lowest) {
        std::fill(values.begin(), values.end(), negative ? -side.highest : side.highest);
        return;
    }
    const double lowest = static_cast<double>(side.lowest) / static_cast<double>(side.highest);
    curve.decode(taker, values.size, lowest, [&](std::size_t start, Span<const double> heights) {
        if (negative) {
            V* last = values.data + (values.size - 1 - start);
            for (std::size_t i = 0; i < heights.size; ++i) {
                *(last - i) = -value_at(side, heights[i]);
            }
        } else {
            V* first = values.data + start;
            for (std::size_t i = 0; i < heights.size; ++i) {
                first[i] = value_at(side, heights[i]);
            }
        }
    });
}

}  // namespace

template <typename Curve>
std::uint64_t fit_capacity(const Curve& curve, std::uint64_t kept, std::size_t itemsize) {
    return kHead + 2 * (2 * itemsize + curve.capacity(kept));
}

template <typename Curve, typename V>
std::size_t fit_encode(const Curve& curve, Span<const Ranked<V>> sorted, Span<double> curve_space,
                       Span<std::uint8_t> out) {
    ByteWriter writer(out);
    const std::size_t positive = count_positive(sorted);
    writer.put(kCurves);
    writer.put_varint(positive);
    put_side(curve, writer, sorted.part(0, positive), false, curve_space);
    put_side(curve, writer, sorted.part(positive, sorted.size - positive), true, curve_space);
    return writer.size();
}

void fit_encode_not_finite(Span<std::uint8_t> out) { out[0] = kNotFinite; }

bool fit_is_not_finite(Bytes payload) { return payload[0] == kNotFinite; }

template <typename V, typename Curve>
Status fit_check(const Curve& curve, Bytes payload, std::uint64_t kept, bool permuted, Bytes& permutation) {
    if (kept > kMostSorted) {
        return failure(Fault::corrupt, Curve::kWhere, "{} values; at most {} can be sorted", kept, kMostSorted);
    }
    ByteTaker taker(Curve::kWhere, payload);
    const std::uint8_t form = taker.take<std::uint8_t>();
    std::uint64_t needed = 0;
    if (taker.ok() && form > kNotFinite) {
        taker.corrupt("form {}", form);
    }
    if (taker.ok() && form == kCurves) {
        const std::uint64_t positive = taker.take_varint();
        if (positive > kept) {
            taker.corrupt("{} of {} values are positive", positive, kept);
        }
        for (const std::uint64_t count : {positive, kept - positive}) {
            if (!taker.ok() || count == 0) {
                continue;
            }
            const Side<V> side = take_side<V>(taker, count);
            if (taker.ok() && side.highest != side.lowest) {
                curve.check(taker, count);
            }
        }
        needed = permuted ? permutation_size(kept) : 0;
    }
    if (!taker.ok()) {
        return taker.status();
    }
    permutation = taker.rest();
    return check_length(Curve::kWhere, payload, payload.size - permutation.size + needed);
}

template <typename Curve, typename V>
void fit_decode(const Curve& curve, Bytes payload, Span<V> values) {
    ByteTaker taker(Curve::kWhere, payload);
    if (taker.take<std::uint8_t>() == kNotFinite) {
        std::fill(values.begin(), values.end(), std::numeric_limits<V>::quiet_NaN());
        return;
    }
    const std::size_t positive = std::min<std::size_t>(taker.take_varint(), values.size);
    fill_side(curve, taker, false, values.part(0, positive));
    fill_side(curve, taker, true, values.part(positive, values.size - positive));
}

#define DEEPREDUCE_FIT(Curve, V)                                                                            \
    template std::size_t fit_encode(const Curve&, Span<const Ranked<V>>, Span<double>, Span<std::uint8_t>); \
    template Status fit_check<V>(const Curve&, Bytes, std::uint64_t, bool, Bytes&);                         \
    template void fit_decode(const Curve&, Bytes, Span<V>);

template std::uint64_t fit_capacity(const Polynomial&, std::uint64_t, std::size_t);
template std::uint64_t fit_capacity(const DoubleExponential&, std::uint64_t, std::size_t);
DEEPREDUCE_FIT(Polynomial, float)
DEEPREDUCE_FIT(Polynomial, double)
DEEPREDUCE_FIT(DoubleExponential, float)
DEEPREDUCE_FIT(DoubleExponential, double)

}  // namespace deepreduce
