#include "half_floats.hpp"

#include "magnitude.hpp"

namespace deepreduce {
namespace {

constexpr std::uint32_t kInfinity = FloatBits<float>::kInfinity;
constexpr std::uint32_t kQuietNan = 0x7fc00000u;

std::uint32_t to_float_bits(float value) { return load<std::uint32_t>(&value); }

/// Rounds to binary32, finite values to finite ones.
std::uint32_t to_float_bits(double value) {
    const auto sign = static_cast<std::uint32_t>((load<std::uint64_t>(&value) & FloatBits<double>::kSign) >> 32);
    const std::uint64_t bits = magnitude(value);
    if (bits > FloatBits<double>::kInfinity) {
        return sign | kQuietNan;
    }
    const std::uint32_t rounded = magnitude(static_cast<float>(value));
    return sign | (rounded == kInfinity && bits != FloatBits<double>::kInfinity ? kInfinity - 1 : rounded);
}

/// bits / 2**count, to nearest, ties to even; 0 < count < 32.
std::uint32_t shift_rounding(std::uint32_t bits, unsigned count) {
    const std::uint32_t below_half = (std::uint32_t{1} << (count - 1)) - 1;
    return (bits + below_half + ((bits >> count) & 1)) >> count;
}

std::uint16_t to_fp16(std::uint32_t bits) {
    constexpr std::uint32_t kLargest = 0x477fe000u;         // 65504
    constexpr std::uint32_t kSmallestNormal = 0x38800000u;  // 2**-14
    constexpr std::uint32_t kSmallestHalf = 0x33000000u;    // 2**-25
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t size = bits & 0x7fffffffu;
    std::uint32_t half;
    if (size > kInfinity) {
        half = 0x7e00u;
    } else if (size == kInfinity) {
        half = 0x7c00u;
    } else if (size >= kLargest) {
        half = 0x7bffu;
    } else if (size >= kSmallestNormal) {
        half = shift_rounding(size - (std::uint32_t{112} << 23), 13);
    } else if (size >= kSmallestHalf) {
        half = shift_rounding((size & 0x007fffffu) | 0x00800000u, 126 - (size >> 23));
    } else {
        half = 0;
    }
    return static_cast<std::uint16_t>(sign | half);
}

std::uint16_t to_bf16(std::uint32_t bits) {
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t size = bits & 0x7fffffffu;
    std::uint32_t half;
    if (size > kInfinity) {
        half = 0x7fc0u;
    } else if (size == kInfinity) {
        half = 0x7f80u;
    } else {
        half = shift_rounding(size, 16);
        half = half == 0x7f80u ? 0x7f7fu : half;
    }
    return static_cast<std::uint16_t>(sign | half);
}

float from_bits(std::uint32_t bits) { return load<float>(&bits); }

float from_fp16(std::uint16_t half) {
    const std::uint32_t sign = (std::uint32_t{half} & 0x8000u) << 16;
    const std::uint32_t exponent = half >> 10 & 0x1fu;
    const std::uint32_t fraction = half & 0x03ffu;
    if (exponent == 0x1f) {
        return from_bits(sign | (fraction != 0 ? kQuietNan : kInfinity));
    }
    if (exponent != 0) {
        return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    }
    const float subnormal = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -subnormal : subnormal;
}

float from_bf16(std::uint16_t half) {
    const std::uint32_t bits = std::uint32_t{half} << 16;
    return from_bits((bits & 0x7fffffffu) > kInfinity ? (bits & 0x80000000u) | kQuietNan : bits);
}

template <typename V, typename Convert>
void encode(Span<const V> values, Span<std::uint8_t> out, Convert convert) {
    for (std::size_t i = 0; i < values.size; ++i) {
        store<std::uint16_t>(out.data + 2 * i, convert(to_float_bits(values[i])));
    }
}

template <typename V, typename Convert>
void decode(Bytes payload, Span<V> values, Convert convert) {
    for (std::size_t i = 0; i < values.size; ++i) {
        values[i] = static_cast<V>(convert(load<std::uint16_t>(payload.data + 2 * i)));
    }
}

}  // namespace

template <typename V>
void fp16_encode(Span<const V> values, Span<std::uint8_t> out) {
    encode(values, out, to_fp16);
}

Status fp16_check(Bytes payload, std::uint64_t kept) { return check_length("fp16", payload, kept * 2); }

template <typename V>
Status fp16_decode(Bytes payload, Span<V> values) {
    const Status status = fp16_check(payload, values.size);
    if (status.ok()) {
        decode(payload, values, from_fp16);
    }
    return status;
}

template <typename V>
void bf16_encode(Span<const V> values, Span<std::uint8_t> out) {
    encode(values, out, to_bf16);
}

Status bf16_check(Bytes payload, std::uint64_t kept) { return check_length("bf16", payload, kept * 2); }

template <typename V>
Status bf16_decode(Bytes payload, Span<V> values) {
    const Status status = bf16_check(payload, values.size);
    if (status.ok()) {
        decode(payload, values, from_bf16);
    }
    return status;
}

template void fp16_encode(Span<const float>, Span<std::uint8_t>);
template void fp16_encode(Span<const double>, Span<std::uint8_t>);
template Status fp16_decode(Bytes, Span<float>);
template Status fp16_decode(Bytes, Span<double>);
template void bf16_encode(Span<const float>, Span<std::uint8_t>);
template void bf16_encode(Span<const double>, Span<std::uint8_t>);
template Status bf16_decode(Bytes, Span<float>);
template Status bf16_decode(Bytes, Span<double>);

}  // namespace deepreduce
