#include "terngrad.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "magnitude.hpp"
#include "random.hpp"

namespace deepreduce {
namespace {

constexpr const char* kWhere = "terngrad";
constexpr std::size_t kPerByte = 5;
constexpr std::array<unsigned, kPerByte + 1> kPowers{1, 3, 9, 27, 81, 243};

/// The largest magnitude, or NaN where a value is not finite.
template <typename V>
V scale_of(Span<const V> values) {
    Bits<V> largest = 0;
    for (const V value : values) {
        largest = std::max(largest, magnitude(value));
    }
    return largest < FloatBits<V>::kInfinity ? from_magnitude<V>(largest) : std::numeric_limits<V>::quiet_NaN();
}

}  // namespace

std::uint64_t terngrad_size(std::uint64_t kept, std::size_t itemsize) {
    return itemsize + kept / kPerByte + (kept % kPerByte != 0);
}

template <typename V>
void terngrad_encode(Span<const V> values, std::uint64_t key, Span<std::uint8_t> out) {
    const V scale = scale_of(values);
    store(out.data, scale);
    const auto packed = out.part(sizeof(V), out.size - sizeof(V));
    if (!(scale > 0)) {
        std::fill(packed.begin(), packed.end(), std::uint8_t{0});
        return;
    }
    for (std::size_t byte = 0; byte < packed.size; ++byte) {
        const std::size_t start = byte * kPerByte;
        const std::size_t count = std::min(kPerByte, values.size - start);
        unsigned sum = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const V value = values[start + i];
            const double chance = std::abs(static_cast<double>(value)) / static_cast<double>(scale);
            // By multiplication: a branch on a draw is mispredicted as often as not.
            const auto sent = static_cast<unsigned>(random_unit(key, start + i) < chance);
            sum += sent * (1 + static_cast<unsigned>(std::signbit(value))) * kPowers[i];
        }
        packed[byte] = static_cast<std::uint8_t>(sum);
    }
}

Status terngrad_check(Bytes payload, std::uint64_t kept, std::size_t itemsize) {
    return check_length(kWhere, payload, terngrad_size(kept, itemsize));
}

template <typename V>
Status terngrad_decode(Bytes payload, Span<V> values) {
    const Status status = terngrad_check(payload, values.size, sizeof(V));
    if (!status.ok()) {
        return status;
    }
    V scale = load<V>(payload.data);
    V zero = 0;
    if (magnitude(scale) > FloatBits<V>::kInfinity) {
        scale = zero = std::numeric_limits<V>::quiet_NaN();
    }
    const std::array<V, 3> meanings{zero, scale, scale == scale ? -scale : scale};
    const Bytes packed = payload.part(sizeof(V), payload.size - sizeof(V));
    for (std::size_t byte = 0; byte < packed.size; ++byte) {
        const std::size_t start = byte * kPerByte;
        const std::size_t count = std::min(kPerByte, values.size - start);
        unsigned rest = packed[byte];
        if (rest >= kPowers[count]) {
            return failure(Fault::corrupt, kWhere, "byte {} is {}, beyond {} digits of three", sizeof(V) + byte, rest,
                           count);
        }
        for (std::size_t i = 0; i < count; ++i) {
            values[start + i] = meanings[rest % 3];
            rest /= 3;
        }
    }
    return {};
}

template void terngrad_encode(Span<const float>, std::uint64_t, Span<std::uint8_t>);
template void terngrad_encode(Span<const double>, std::uint64_t, Span<std::uint8_t>);
template Status terngrad_decode(Bytes, Span<float>);
template Status terngrad_decode(Bytes, Span<double>);

}  // namespace deepreduce
