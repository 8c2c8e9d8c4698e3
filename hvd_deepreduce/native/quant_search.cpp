#include <algorithm>
#include <cmath>
#include <limits>

#include "magnitude.hpp"
#include "quant.hpp"

namespace deepreduce {
namespace {

constexpr int kTries = 8;

/// Where values lie between the ends of their levels, in 4096ths: sums that no order of adding changes.
struct Fractions {
    std::int64_t sum = 0;
    std::int64_t squares = 0;
};

template <typename V>
Fractions fractions_of(Span<const V> values, const Quantiser<V>& quantiser) {
    const double lowest = quantiser.lowest;
    const double unit = quantiser.unit;
    const double scale = 1 / (static_cast<double>(quantiser.step) * unit);
    Fractions found;
    for (const V value : values) {
        const double place = (std::abs(static_cast<double>(value)) - lowest) * unit * scale;
        const double fraction = place - static_cast<double>(static_cast<std::int64_t>(place));
        const auto part = static_cast<std::int32_t>(fraction * 4096);
        found.sum += part;
        found.squares += static_cast<std::int64_t>(part) * part;
    }
    return found;
}

/// The L2 norm times the unit, and everything about the values that a step does not change.
template <typename V>
double measure(Span<const V> values, Quantiser<V>& quantiser) {
    Bits<V> lowest = FloatBits<V>::kInfinity;
    Bits<V> largest = 0;
    for (const V value : values) {
        lowest = std::min(lowest, magnitude(value));
        largest = std::max(largest, magnitude(value));
    }
    quantiser.finite = largest < FloatBits<V>::kInfinity;
    if (!quantiser.finite || largest == 0) {
        return 0;
    }
    quantiser.lowest = from_magnitude<V>(lowest);
    quantiser.largest = from_magnitude<V>(largest);
    if (sizeof(V) == 8) {
        quantiser.unit = std::ldexp(1.0, -std::clamp(std::ilogb(quantiser.largest), -1000, 1000));
    }
    double squares = 0;
    for (const V value : values) {
        const double scaled = static_cast<double>(value) * quantiser.unit;
        squares += scaled * scaled;
    }
    return std::sqrt(squares);
}

/// The step to be sent for one that is wanted.
template <typename V>
V representable(double wanted, double widest) {
    constexpr V tiny = std::numeric_limits<V>::denorm_min();
    const auto step = static_cast<V>(std::min({wanted, widest, static_cast<double>(std::numeric_limits<V>::max())}));
    // Decoded values are multiples of the smallest subnormal. A step of few of them would add their rounding to the
    // error; one of them adds nothing.
    return step < 32 * tiny ? tiny : step;
}

}  // namespace

template <typename V>
Quantiser<V> quant_search(Span<const V> values, const QuantSettings& settings) {
    Quantiser<V> quantiser;
    const double norm = measure(values, quantiser);
    if (norm == 0 || quantiser.lowest == quantiser.largest) {
        return quantiser;
    }
    const auto count = static_cast<double>(values.size);
    const double target = settings.error * norm;
    const double even = target * std::sqrt(12 / count);
    const double widest =
        (static_cast<double>(quantiser.largest) - static_cast<double>(quantiser.lowest)) * 1.0009765625;
    if (settings.unbiased) {
        const double margin = std::max(0.5773, 1 - 2 / std::sqrt(count));
        quantiser.step = representable<V>(even * margin / quantiser.unit, widest);
        quantiser.offset = 128;
        return quantiser;
    }
    const double aim = target * 0.99609375;
    double wanted = even * 0.9921875 / quantiser.unit;
    Quantiser<V> best = quantiser;
    for (int tried = 0; tried <= kTries; ++tried) {
        if (tried == kTries) {
            if (best.step > 0) {
                break;
            }
            // Each value within a step: this one is always right.
            wanted = aim / std::sqrt(count) / quantiser.unit;
        }
        quantiser.step = representable<V>(wanted, widest);
        const Fractions found = fractions_of(values, quantiser);
        const auto kept = static_cast<std::int64_t>(values.size);
        const std::int64_t offset = std::min<std::int64_t>(255, (found.sum + 8 * kept) / (16 * kept));
        quantiser.offset = static_cast<std::uint8_t>(offset);
        const std::int64_t deviation = found.squares - 32 * offset * found.sum + 256 * offset * offset * kept;
        const double error = static_cast<double>(quantiser.step) * quantiser.unit *
                             (std::sqrt(static_cast<double>(deviation)) * 0.000244140625);
        if (error <= aim && quantiser.step > best.step) {
            best = quantiser;
            if (error >= aim * 0.9921875 || error == 0 || wanted >= widest) {
                break;
            }
        }
        wanted = error > 0 ? static_cast<double>(quantiser.step) * (aim * 0.99609375 / error)
                           : static_cast<double>(quantiser.step) * 2;
    }
    return best.step > 0 ? best : quantiser;
}

template Quantiser<float> quant_search(Span<const float>, const QuantSettings&);
template Quantiser<double> quant_search(Span<const double>, const QuantSettings&);

}  // namespace deepreduce
