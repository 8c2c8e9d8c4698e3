#include "quant.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "magnitude.hpp"
#include "quant_models.hpp"
#include "random.hpp"

namespace deepreduce {
namespace {

constexpr const char* kWhere = "quant";

enum Mode : std::uint8_t { kNotFinite = 1, kZero = 2, kPlainSigns = 3, kSignsByPlace = 4 };

/// How many values a byte may stand for: a sign by place takes 0.0056 bits at least.
constexpr std::uint64_t kMostPerByte = 2048;
constexpr std::uint64_t kMostColumnsPerValue = 8;
constexpr unsigned kMostShift = 15;

template <typename V>
constexpr std::size_t kHead = 3 + 2 * sizeof(V);

template <typename V>
struct Head {
    unsigned tokens;
    unsigned shift;
    V lowest;
    V step;
    std::uint8_t offset;

    static Head read(const std::uint8_t* from) {
        return {1u + (from[1] >> 4), from[1] & 15u, load<V>(from + 2), load<V>(from + 2 + sizeof(V)),
                from[2 + 2 * sizeof(V)]};
    }

    void write(std::uint8_t* to) const {
        to[1] = static_cast<std::uint8_t>((tokens - 1) << 4 | shift);
        store(to + 2, lowest);
        store(to + 2 + sizeof(V), step);
        to[2 + 2 * sizeof(V)] = offset;
    }
};

/// Calls `use` with index and level of each value in turn.
template <typename V, typename Use>
void for_levels(Span<const V> values, const Quantiser<V>& quantiser, const QuantSettings& settings, Use use) {
    const double lowest = quantiser.lowest;
    const double unit = quantiser.unit;
    const double scale = quantiser.step > 0 ? 1 / (static_cast<double>(quantiser.step) * unit) : 0;
    const bool dithered = settings.unbiased && quantiser.step > 0;
    for (std::size_t i = 0; i < values.size; ++i) {
        double place = (std::abs(static_cast<double>(values[i])) - lowest) * unit * scale;
        if (dithered) {
            place += random_unit(settings.key, i);
        }
        use(i, static_cast<std::uint64_t>(place));
    }
}

/// Tokens and shift that suit the levels.
template <typename V>
Head<V> head_of(Span<const V> values, const Quantiser<V>& quantiser, const QuantSettings& settings) {
    std::uint64_t sum = 0;
    std::uint64_t highest = 0;
    for_levels(values, quantiser, settings, [&](std::size_t, std::uint64_t level) {
        sum += level;
        highest = std::max(highest, level);
    });
    unsigned shift = 0;
    while (shift < kMostShift && (sum / values.size) >> shift >= 8) {
        ++shift;
    }
    return {token_of(highest >> shift) + 1, shift, quantiser.lowest, quantiser.step, quantiser.offset};
}

template <typename V>
bool is_plain(V value) {
    return magnitude(value) < FloatBits<V>::kInfinity && !std::signbit(value);
}

/// Values from levels, signs and dither.
template <typename V>
class Scale {
  public:
    Scale(const Head<V>& head, const QuantSettings& settings)
        : lowest_(head.lowest), step_(head.step), offset_(head.offset / 256.0), settings_(settings) {}

    V value(std::size_t index, std::uint64_t level, bool negative) const {
        double places = static_cast<double>(level) + offset_;
        if (settings_.unbiased) {
            places -= random_unit(settings_.key, index);
        }
        const double size = lowest_ + places * step_;
        const auto rounded = static_cast<V>(std::min(size, static_cast<double>(std::numeric_limits<V>::max())));
        return negative ? -rounded : rounded;
    }

  private:
    double lowest_;
    double step_;
    double offset_;
    QuantSettings settings_;
};

}  // namespace

std::uint64_t quant_agreed_size(std::uint64_t kept, std::uint64_t rows, std::uint64_t columns) {
    return rows > 1 && columns <= kMostColumnsPerValue * kept ? columns : 0;
}

std::uint64_t quant_capacity(std::uint64_t kept, std::size_t value_size) {
    // Of a value: 12 bits of a token, 5 and 32 and a shift of no more than is left of 33 of a level, 8 of a sign.
    return 3 + 2 * value_size + kRangeTail + 8 * kept;
}

template <typename V, typename P>
std::size_t quant_encode(Span<const V> values, const QuantPlaces<P>& places, const QuantSettings& settings,
                         Span<std::uint8_t> out) {
    const Quantiser<V> quantiser = quant_search(values, settings);
    if (!quantiser.finite || quantiser.largest == 0) {
        out[0] = quantiser.finite ? kZero : kNotFinite;
        return 1;
    }
    const Head<V> head = head_of(values, quantiser, settings);
    const bool by_place = places.agreed.size > 0;
    out[0] = by_place ? kSignsByPlace : kPlainSigns;
    head.write(out.data);
    RangeEncoder coder(out.part(kHead<V>, out.size - kHead<V>));
    LevelModel levels(head.tokens, head.shift, values.size);
    if (by_place) {
        SignModel<P> signs(places.positions, places.agreed);
        for_levels(values, quantiser, settings, [&](std::size_t i, std::uint64_t level) {
            levels.put(coder, level, 0, 0);
            signs.put(coder, i, std::signbit(values[i]));
        });
    } else {
        for_levels(values, quantiser, settings, [&](std::size_t i, std::uint64_t level) {
            levels.put(coder, level, std::signbit(values[i]) ? 1 : 0, 1);
        });
    }
    return kHead<V> + coder.finish();
}

template <typename V>
Status quant_check(Bytes payload, std::uint64_t kept, std::uint64_t rows, std::uint64_t columns,
                   std::uint64_t& agreed) {
    agreed = 0;
    if (payload.size == 0) {
        return failure(Fault::truncated, kWhere, "no bytes");
    }
    const std::uint8_t mode = payload[0];
    if (mode == kNotFinite || mode == kZero) {
        return check_length(kWhere, payload, 1);
    }
    if (mode != kPlainSigns && mode != kSignsByPlace) {
        return failure(Fault::corrupt, kWhere, "mode {}; allowed are 1 to 4", mode);
    }
    if (payload.size < kHead<V> + kRangeTail) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes; {} are needed at least", payload.size,
                       kHead<V> + kRangeTail);
    }
    const auto head = Head<V>::read(payload.data);
    if (!is_plain(head.lowest) || !is_plain(head.step)) {
        return failure(Fault::corrupt, kWhere, "the lowest magnitude or the step is negative or not finite");
    }
    if (head.tokens == 1 && head.shift > 0) {
        return failure(Fault::corrupt, kWhere, "a shift of {} for levels that are all 0", head.shift);
    }
    if (mode == kSignsByPlace) {
        agreed = quant_agreed_size(kept, rows, columns);
        if (agreed == 0) {
            return failure(Fault::corrupt, kWhere, "signs by row and column in a matrix of {} x {} with {} kept", rows,
                           columns, kept);
        }
    }
    const std::size_t stream = payload.size - kHead<V>;
    const std::uint64_t most = stream * (mode == kPlainSigns ? 8 : kMostPerByte);
    if (kept > most) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes for {} values; at most {} fit in", payload.size,
                       kept, most);
    }
    return {};
}

template <typename V, typename P>
Status quant_decode(Bytes payload, const QuantPlaces<P>& places, const QuantSettings& settings, Span<V> values) {
    const std::uint8_t mode = payload[0];
    if (mode == kNotFinite || mode == kZero) {
        std::fill(values.begin(), values.end(), mode == kZero ? V{0} : std::numeric_limits<V>::quiet_NaN());
        return {};
    }
    const auto head = Head<V>::read(payload.data);
    const Scale<V> scale(head, settings);
    RangeDecoder coder(payload.part(kHead<V>, payload.size - kHead<V>));
    LevelModel levels(head.tokens, head.shift, values.size);
    std::uint64_t below = 0;
    if (mode == kSignsByPlace) {
        SignModel<P> signs(places.positions, places.agreed);
        for (std::size_t i = 0; i < values.size; ++i) {
            const std::uint64_t level = levels.take(coder, below, 0);
            values[i] = scale.value(i, level, signs.take(coder, i));
        }
    } else {
        for (std::size_t i = 0; i < values.size; ++i) {
            const std::uint64_t level = levels.take(coder, below, 1);
            values[i] = scale.value(i, level, below != 0);
        }
    }
    if (coder.truncated()) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes ends before the last of {} values", payload.size,
                       values.size);
    }
    if (coder.left() > 0) {
        return failure(Fault::corrupt, kWhere, "payload of {} bytes; {} are left over", payload.size, coder.left());
    }
    if (coder.corrupt()) {
        return failure(Fault::corrupt, kWhere, "the range coder does not end as it should");
    }
    return {};
}

using Narrow = QuantPlaces<std::uint32_t>;
using Wide = QuantPlaces<std::uint64_t>;
template std::size_t quant_encode(Span<const float>, const Narrow&, const QuantSettings&, Span<std::uint8_t>);
template std::size_t quant_encode(Span<const float>, const Wide&, const QuantSettings&, Span<std::uint8_t>);
template std::size_t quant_encode(Span<const double>, const Narrow&, const QuantSettings&, Span<std::uint8_t>);
template std::size_t quant_encode(Span<const double>, const Wide&, const QuantSettings&, Span<std::uint8_t>);
template Status quant_check<float>(Bytes, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t&);
template Status quant_check<double>(Bytes, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t&);
template Status quant_decode(Bytes, const Narrow&, const QuantSettings&, Span<float>);
template Status quant_decode(Bytes, const Wide&, const QuantSettings&, Span<float>);
template Status quant_decode(Bytes, const Narrow&, const QuantSettings&, Span<double>);
template Status quant_decode(Bytes, const Wide&, const QuantSettings&, Span<double>);

}  // namespace deepreduce
