// Value codec `natural`: FORMAT.md, 5.9. An input is kept in five bytes, one for the value type, the payload. The top
// bit of kept asks for the largest number that the payload has the length of, if any.
#include "natural.hpp"

#include <limits>

#include "bits.hpp"
#include "input.hpp"

namespace deepreduce::fuzz {
namespace {

/// A value as the page has it, or none where the exponent is beyond the top.
template <typename V>
bool expected_value(SlowReader& fields, std::uint64_t bits, std::uint64_t lowest, V& value) {
    const std::uint64_t place = fields.take(static_cast<unsigned>(bits));
    const bool negative = fields.take(1) != 0;
    const std::uint64_t exponent = place == 0 ? 0 : lowest + place - 1;
    const std::uint64_t top = FloatBits<V>::kInfinity / FloatBits<V>::kOneExponent;
    if (exponent > top) {
        return false;
    }
    const V size = exponent == top ? std::numeric_limits<V>::max()
                                   : from_magnitude<V>(static_cast<Bits<V>>(exponent * FloatBits<V>::kOneExponent));
    value = lowest == 0xffff ? std::numeric_limits<V>::quiet_NaN() : negative ? -size : size;
    return true;
}

template <typename V>
void decode_and_encode(Bytes payload, std::uint64_t kept) {
    if (!natural_check<V>(payload, kept).ok()) {
        return;
    }
    require(kept <= 8 * payload.size, "memory is reserved for what the bytes can hold");
    Exact<V> values(kept);
    const Status status = natural_decode(payload, values.span());
    require(status.ok() || status.fault == Fault::corrupt, "of the right length, a payload is corrupt at most");
    SlowReader fields(payload.part(3, payload.size - 3));
    bool right = true;
    for (std::size_t i = 0; i < kept && right; ++i) {
        V expected{};
        right = expected_value(fields, payload[0], load<std::uint16_t>(payload.data + 1), expected);
        require(!status.ok() || same_bytes<V>(values.view().part(i, 1), {&expected, 1}),
                "values are those of the page");
    }
    right = right && fields.at_end();
    require(status.ok() == right, "exponents are allowed and padding is zero, or the payload corrupt");
    if (!status.ok()) {
        return;
    }
    const NaturalRange range = natural_range(values.view(), kept);
    require(range.bits <= payload[0] + 1u, "a range is the least there is");
    Exact<std::uint8_t> encoded(natural_size(kept, range));
    natural_encode(values.view(), kept, range, encoded.span());
    Exact<V> again(kept);
    require(natural_decode(encoded.view(), again.span()).ok(), "what was encoded is accepted");
}

void test(Input input) {
    std::uint64_t kept = input.take(5);
    const bool twice = input.take(1) % 2 != 0;
    const auto payload = input.rest();
    if (kept >> 39 != 0) {
        kept = payload.size() < 3 ? 0 : 8 * (payload.size() - 3) / (payload.view()[0] + std::uint64_t{1});
    }
    if (twice) {
        decode_and_encode<double>(payload.view(), kept);
    } else {
        decode_and_encode<float>(payload.view(), kept);
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test({data, size});
    return 0;
}
