// Value codec `terngrad`: FORMAT.md, 5.8. An input is kept in five bytes, one for the value type, the payload. The top
// bit of kept asks for the largest number that the payload has the length of.
#include "terngrad.hpp"

#include "input.hpp"

namespace deepreduce::fuzz {
namespace {

template <typename V>
void decode_and_encode(Bytes payload, std::uint64_t kept) {
    Exact<V> values(kept);
    const Status status = terngrad_decode(payload, values.span());
    require(status.ok() || status.fault == Fault::corrupt, "of the right length, a payload is corrupt at most");
    bool right = true;
    std::uint64_t place = 0;
    for (const std::uint8_t byte : payload.part(sizeof(V), payload.size - sizeof(V))) {
        unsigned rest = byte;
        for (unsigned digit = 0; digit < 5; ++digit, ++place) {
            right = right && (place < kept || rest % 3 == 0);
            rest /= 3;
        }
        right = right && rest == 0;
    }
    require(status.ok() == right, "five digits of three a byte, and zeros behind the last value");
    if (!status.ok()) {
        return;
    }
    const V scale = load<V>(payload.data);
    for (const V value : values.view()) {
        const bool is_nan = magnitude(value) > FloatBits<V>::kInfinity;
        require(is_nan ? magnitude(scale) > FloatBits<V>::kInfinity
                       : magnitude(value) == 0 || magnitude(value) == magnitude(scale),
                "a value is zero or the scale");
    }
    Exact<std::uint8_t> encoded(terngrad_size(kept, sizeof(V)));
    terngrad_encode(values.view(), kept, encoded.span());
    Exact<V> again(kept);
    require(terngrad_decode(encoded.view(), again.span()).ok(), "what was encoded is accepted");
    if (is_finite(scale) && magnitude(scale) != 0) {
        require(same_bytes(values.view(), again.view()), "the largest magnitude and zero are exact");
    }
}

void test(Input input) {
    std::uint64_t kept = input.take(5);
    const bool twice = input.take(1) % 2 != 0;
    const std::size_t itemsize = twice ? 8 : 4;
    const auto payload = input.rest();
    if (kept >> 39 != 0) {
        kept = payload.size() < itemsize ? 0 : 5 * (payload.size() - itemsize);
    }
    const bool passed = terngrad_check(payload.view(), kept, itemsize).ok();
    require(passed == (payload.size() == itemsize + (kept + 4) / 5), "the check is that of the length");
    if (passed && twice) {
        decode_and_encode<double>(payload.view(), kept);
    } else if (passed) {
        decode_and_encode<float>(payload.view(), kept);
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test({data, size});
    return 0;
}
