// What the decoders of 16 bits a value promise. An input is kept in five bytes, one for the value type, the payload.
// The top bit of kept asks for the number that the payload has the length of.
#pragma once

#include "half_floats.hpp"
#include "input.hpp"

namespace deepreduce::fuzz {

template <typename V>
constexpr Bits<V> kQuietNan = FloatBits<V>::kInfinity | FloatBits<V>::kInfinity >> 1;

/// Each half but a NaN is encoded as it came; NaNs are made quiet, with their sign: FORMAT.md, 5.2 and 5.3.
template <typename Codec, typename V>
void decode_and_encode(Bytes payload, std::uint64_t kept) {
    Exact<V> values(kept);
    require(Codec::decode(payload, values.span()).ok(), "only the length can be wrong");
    Exact<std::uint8_t> encoded(payload.size);
    Codec::encode(values.view(), encoded.span());
    for (std::size_t i = 0; i < kept; ++i) {
        const auto half = load<std::uint16_t>(payload.data + 2 * i);
        const bool is_nan = (half & 0x7fffu) > Codec::kInfinity;
        const std::uint32_t expected = is_nan ? (half & 0x8000u) | Codec::kNan : half;
        require(load<std::uint16_t>(encoded.view().data + 2 * i) == expected, "a decoded half is encoded as it came");
        const V value = values.view()[i];
        require(!is_nan || magnitude(value) == kQuietNan<V>, "NaN decodes to the quiet NaN");
        require(((half & 0x8000u) != 0) == ((load<Bits<V>>(&value) & FloatBits<V>::kSign) != 0), "signs survive");
    }
}

template <typename Codec>
void test_half_decoder(Input input) {
    std::uint64_t kept = input.take(5);
    const bool twice = input.take(1) % 2 != 0;
    const auto payload = input.rest();
    if (kept >> 39 != 0) {
        kept = payload.size() / 2;
    }
    const bool passed = Codec::check(payload.view(), kept).ok();
    require(passed == (payload.size() == 2 * kept), "the check is that of the length");
    if (passed && twice) {
        decode_and_encode<Codec, double>(payload.view(), kept);
    } else if (passed) {
        decode_and_encode<Codec, float>(payload.view(), kept);
    }
}

}  // namespace deepreduce::fuzz
