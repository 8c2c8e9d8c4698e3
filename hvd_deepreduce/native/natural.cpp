#include "natural.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bitstream.hpp"
#include "magnitude.hpp"
#include "random.hpp"

namespace deepreduce {
namespace {

constexpr const char* kWhere = "natural";
constexpr std::size_t kHead = 3;
constexpr unsigned kNotFinite = 0xffff;

template <typename V>
constexpr unsigned kFractionBits = std::numeric_limits<V>::digits - 1;

/// The exponent field of infinity: it stands for the power of two above the largest finite value.
template <typename V>
constexpr auto kTop = static_cast<unsigned>(FloatBits<V>::kInfinity >> kFractionBits<V>);

template <typename V>
constexpr unsigned kMostBits = sizeof(V) == 4 ? 8 : 11;

unsigned digits_of(unsigned value) {
    unsigned digits = 0;
    for (; value != 0; value >>= 1) {
        ++digits;
    }
    return digits;
}

/// The exponent field after rounding. Between powers of two, and below the least normal one down to zero, values are
/// evenly spaced: the fraction of a value is its chance of going up, and 53 bits of a draw hold it exactly.
template <typename V>
unsigned exponent_of(V value, std::uint64_t draw) {
    const Bits<V> size = magnitude(value);
    const std::uint64_t fraction = std::uint64_t{size} & ((std::uint64_t{1} << kFractionBits<V>)-1);
    const bool up = draw >> 11 < fraction << (53 - kFractionBits<V>);
    return static_cast<unsigned>(size >> kFractionBits<V>) + (up ? 1 : 0);
}

NaturalRange range_in(Bytes payload) { return {payload[0], load<std::uint16_t>(payload.data + 1)}; }

}  // namespace

template <typename V>
NaturalRange natural_range(Span<const V> values, std::uint64_t key) {
    unsigned lowest = kNotFinite;
    unsigned highest = 0;
    Bits<V> largest = 0;
    for (std::size_t i = 0; i < values.size; ++i) {
        const unsigned exponent = exponent_of(values[i], random_u64(key, i));
        largest = std::max(largest, magnitude(values[i]));
        lowest = std::min(lowest, exponent == 0 ? kNotFinite : exponent);
        highest = std::max(highest, exponent);
    }
    if (largest >= FloatBits<V>::kInfinity) {
        return {0, kNotFinite};
    }
    return highest == 0 ? NaturalRange{0, 0} : NaturalRange{digits_of(highest - lowest + 1), lowest};
}

std::uint64_t natural_size(std::uint64_t kept, NaturalRange range) { return kHead + (kept * (range.bits + 1) + 7) / 8; }

template <typename V>
void natural_encode(Span<const V> values, std::uint64_t key, NaturalRange range, Span<std::uint8_t> out) {
    out[0] = static_cast<std::uint8_t>(range.bits);
    store(out.data + 1, static_cast<std::uint16_t>(range.lowest));
    BitWriter fields(out.part(kHead, out.size - kHead));
    for (std::size_t i = 0; i < values.size; ++i) {
        std::uint64_t field = 0;
        if (range.lowest != kNotFinite) {
            const unsigned exponent = exponent_of(values[i], random_u64(key, i));
            field = exponent == 0 ? 0 : exponent - range.lowest + 1;
            field |= std::uint64_t{std::signbit(values[i])} << range.bits;
        }
        fields.put(field, range.bits + 1);
    }
    fields.finish();
}

template <typename V>
Status natural_check(Bytes payload, std::uint64_t kept) {
    if (payload.size < kHead) {
        return check_length(kWhere, payload, natural_size(kept, {0, 0}));
    }
    const NaturalRange range = range_in(payload);
    if (range.bits > kMostBits<V>) {
        return failure(Fault::corrupt, kWhere, "exponents of {} bits; at most {} are allowed", range.bits,
                       kMostBits<V>);
    }
    const bool allowed = range.bits == 0 ? range.lowest == 0 || range.lowest == kNotFinite
                                         : range.lowest >= 1 && range.lowest <= kTop<V>;
    if (!allowed) {
        return failure(Fault::corrupt, kWhere, "lowest exponent {} with exponents of {} bits", range.lowest,
                       range.bits);
    }
    return check_length(kWhere, payload, natural_size(kept, range));
}

template <typename V>
Status natural_decode(Bytes payload, Span<V> values) {
    const Status status = natural_check<V>(payload, values.size);
    if (!status.ok()) {
        return status;
    }
    const NaturalRange range = range_in(payload);
    BitReader fields(payload.part(kHead, payload.size - kHead));
    for (std::size_t i = 0; i < values.size; ++i) {
        const std::uint64_t field = fields.take(range.bits + 1);
        const std::uint64_t place = low_bits(field, range.bits);
        const std::uint64_t exponent = place == 0 ? 0 : range.lowest + place - 1;
        if (exponent > kTop<V>) {
            return failure(Fault::corrupt, kWhere, "value {} has the exponent {}; at most {} is allowed", i, exponent,
                           kTop<V>);
        }
        // The power of two above the largest finite value is taken for that.
        const V size = exponent == kTop<V> ? std::numeric_limits<V>::max()
                                           : from_magnitude<V>(static_cast<Bits<V>>(exponent << kFractionBits<V>));
        values[i] = field >> range.bits != 0 ? -size : size;
    }
    if (!fields.padding_is_zero()) {
        return failure(Fault::corrupt, kWhere, "padding bits of the last byte, {}, are not zero",
                       payload[payload.size - 1]);
    }
    if (range.lowest == kNotFinite) {
        std::fill(values.begin(), values.end(), std::numeric_limits<V>::quiet_NaN());
    }
    return {};
}

template NaturalRange natural_range(Span<const float>, std::uint64_t);
template NaturalRange natural_range(Span<const double>, std::uint64_t);
template void natural_encode(Span<const float>, std::uint64_t, NaturalRange, Span<std::uint8_t>);
template void natural_encode(Span<const double>, std::uint64_t, NaturalRange, Span<std::uint8_t>);
template Status natural_check<float>(Bytes, std::uint64_t);
template Status natural_check<double>(Bytes, std::uint64_t);
template Status natural_decode(Bytes, Span<float>);
template Status natural_decode(Bytes, Span<double>);

}  // namespace deepreduce
