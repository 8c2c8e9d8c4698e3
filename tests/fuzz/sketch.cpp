// Value codec `sketch`: FORMAT.md, 5.13. An input is kept in two bytes, a byte with the value type in bit 0 and the
// quantiles to encode with less two in the others, the payload. Odd numbers of quantiles are of squares.
#include "sketch.hpp"

#include "input.hpp"

namespace deepreduce::fuzz {
namespace {

template <typename V>
Status decode(Bytes payload, Span<V> values) {
    const Status status = sketch_check<V>(payload, values.size);
    return status.ok() ? sketch_decode(payload, values) : status;
}

template <typename V>
void encode_again(Span<const V> values, unsigned quantiles) {
    Exact<std::uint8_t> room(sketch_capacity(values.size, quantiles, sizeof(V)));
    Exact<Ranked<V>> first(values.size);
    Exact<Ranked<V>> second(values.size);
    Exact<std::uint8_t> buckets(values.size);
    const std::size_t size =
        sketch_encode(values, quantiles, quantiles % 2 != 0, first.span(), second.span(), buckets.span(), room.span());
    const Exact<std::uint8_t> payload(room.view().part(0, size));
    Exact<V> decoded(values.size);
    require(decode(payload.view(), decoded.span()).ok(), "what was encoded is accepted");
    if (!are_finite(values)) {
        return;
    }
    for (std::size_t i = 0; i < values.size; ++i) {
        require(is_finite(decoded.view()[i]), "means of finite values are finite");
        require(values[i] < 0 ? decoded.view()[i] <= 0 : decoded.view()[i] >= 0, "a bucket is of one sign");
    }
    for (std::size_t i = 1; i < values.size; ++i) {
        const bool falls = values[i] <= values[i - 1];
        require(!falls || decoded.view()[i] <= decoded.view()[i - 1], "buckets follow one another");
    }
}

template <typename V>
void test_as(Bytes payload, std::size_t kept, unsigned quantiles) {
    Exact<V> values(kept);
    const Status status = decode(payload, values.span());
    require(status.ok() || status.fault == Fault::corrupt || status.fault == Fault::truncated, "faults are of bytes");
    if (!status.ok() || kept == 0) {
        return;
    }
    Exact<V> other(kept);
    const Exact<std::uint8_t> shorter(payload.part(0, payload.size - 1));
    require(decode(shorter.view(), other.span()).fault == Fault::truncated, "a byte less is told");
    Exact<std::uint8_t> longer(payload.size + 1);
    std::copy(payload.begin(), payload.end(), longer.span().begin());
    longer.span()[payload.size] = 0;
    require(decode(longer.view(), other.span()).fault == Fault::corrupt, "a byte more is told");
    encode_again(values.view(), quantiles);
}

void test(Input input) {
    const std::size_t kept = input.take(2) % 4096;
    const std::uint64_t flags = input.take(1);
    const auto quantiles = static_cast<unsigned>(flags / 2 + 2);
    const auto payload = input.rest();
    if (flags % 2 != 0) {
        test_as<double>(payload.view(), kept, quantiles);
    } else {
        test_as<float>(payload.view(), kept, quantiles);
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test({data, size});
    return 0;
}
