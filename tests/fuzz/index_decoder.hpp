// What every index decoder promises. An input is numel and kept, five bytes each, and the payload. The top bit of kept
// asks for numbers that the payload has the length of: few mutations would keep to it.
#pragma once

#include "input.hpp"
#include "positions.hpp"
#include "status.hpp"

namespace deepreduce::fuzz {

template <typename P>
bool is_support(Span<const P> positions, std::uint64_t numel) {
    std::uint64_t next = 0;
    for (const P position : positions) {
        if (position < next || position >= numel) {
            return false;
        }
        next = std::uint64_t{position} + 1;
    }
    return true;
}

template <typename Codec, typename P>
Status decode(Bytes payload, std::uint64_t numel, Exact<P>& positions) {
    return Codec::decode(Exact<std::uint8_t>(payload).view(), numel, positions.span());
}

/// FORMAT.md, 1: a byte less is told as truncated, a byte more as corrupt.
template <typename Codec, typename P>
void require_length_to_the_byte(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
    Exact<P> ignored(kept);
    if (payload.size > 0) {
        const auto status = decode<Codec>(payload.part(0, payload.size - 1), numel, ignored);
        require(status.fault == Fault::truncated, "a payload less its last byte is truncated");
    }
    auto longer = Exact<std::uint8_t>::zeros(payload.size + 1);
    std::copy(payload.begin(), payload.end(), longer.span().begin());
    const auto status = decode<Codec>(longer.view(), numel, ignored);
    require(status.fault == Fault::corrupt, "a payload with a byte left over is corrupt");
}

template <typename Codec, typename P>
void decode_and_encode(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
    Exact<P> positions(kept);
    const Status status = decode<Codec>(payload, numel, positions);
    require(status.fault != Fault::setting, "what is wrong with a payload is not the caller's setting");
    if (!status.ok()) {
        return;
    }
    require(is_support(positions.view(), numel), "decoded positions increase and lie below numel");
    const Exact<std::uint8_t> encoded = Codec::encode(positions.view(), numel);
    if (Codec::kCanonical) {
        require(same_bytes(encoded.view(), payload), "what was accepted is encoded as it came");
    }
    Exact<P> again(kept);
    require(decode<Codec>(encoded.view(), numel, again).ok(), "what was encoded is accepted");
    require(same_bytes(again.view(), positions.view()), "what was encoded decodes to the same positions");
    require_length_to_the_byte<Codec, P>(payload, kept, numel);
}

/// The most that are looked at of a codec with kDensest 0, whose bytes may stand for any number of positions each.
constexpr std::uint64_t kMost = 10'000;

/// As the binding does: memory is reserved only for what the check has passed.
template <typename Codec>
void test_index_decoder(Input input) {
    std::uint64_t numel = input.take(5) % (kMaxNumel + 1);
    const std::uint64_t kept_given = input.take(5);
    std::uint64_t kept = kept_given % (kMaxNumel + 1);
    const auto payload = input.rest();
    if (kept_given >> 39 != 0) {
        Codec::fit(payload.view(), numel, kept);
    }
    if (!Codec::check(payload.view(), kept, numel).ok()) {
        return;
    }
    require(kept <= numel, "memory is reserved for no more than there is");
    if (Codec::kDensest != 0) {
        require(kept <= payload.size() * Codec::kDensest, "memory is reserved for what the bytes can hold");
    } else if (kept > kMost) {
        return;
    }
    if (numel <= kMaxNarrow) {
        decode_and_encode<Codec, std::uint32_t>(payload.view(), kept, numel);
    } else {
        decode_and_encode<Codec, std::uint64_t>(payload.view(), kept, numel);
    }
}

}  // namespace deepreduce::fuzz
