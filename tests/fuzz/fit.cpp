// Value codecs `fit_poly` and `fit_dexp`: FORMAT.md, 5.11 and 5.12. An input is kept in two bytes, a byte with the
// value type in bit 0, the order there in bit 1, `fit_dexp` in bit 2 and the pieces to encode with in the others, the
// degree less one, the payload.
#include "fit.hpp"

#include "input.hpp"

namespace deepreduce::fuzz {
namespace {

/// As a receiver decodes: the check, the curves, and the order if there is one.
template <typename V, typename Curve>
Status decode(const Curve& curve, Bytes payload, bool permuted, Span<V> values) {
    Bytes packed;
    const Status status = fit_check<V>(curve, payload, values.size, permuted, packed);
    if (!status.ok() || !permuted || fit_is_not_finite(payload)) {
        if (status.ok()) {
            fit_decode(curve, payload, values);
        }
        return status;
    }
    require(packed.size == permutation_size(values.size), "an order is as long as it must be");
    Exact<V> sorted(values.size);
    fit_decode(curve, payload, sorted.span());
    auto seen = Exact<std::uint64_t>::zeros(values.size / 64 + 1);
    return unpack_values(Curve::kWhere, packed, sorted.view(), seen.span(), values);
}

template <typename V, typename Curve>
void encode_again(const Curve& curve, Span<const V> values) {
    Exact<Ranked<V>> first(values.size);
    Exact<Ranked<V>> second(values.size);
    const auto sorted = sort_falling(values, first.span(), second.span());
    Exact<double> heights(values.size);
    Exact<std::uint8_t> room(fit_capacity(curve, values.size, sizeof(V)) + permutation_size(values.size));
    const std::size_t curves = fit_encode(curve, sorted, heights.span(), room.span());
    const std::size_t size = curves + permutation_size(values.size);
    pack_places(sorted, room.span().part(curves, size - curves));
    const Exact<std::uint8_t> payload(room.view().part(0, size));
    Exact<V> decoded(values.size);
    require(decode(curve, payload.view(), true, decoded.span()).ok(), "what was encoded is accepted");
    for (std::size_t i = 0; i < values.size; ++i) {
        const bool negative = values[i] < 0;
        const V highest = negative ? value_of_key<V>(sorted[values.size - 1].key) : value_of_key<V>(sorted[0].key);
        const V found = decoded.view()[i];
        require(negative ? found <= 0 && found >= highest : found >= 0 && found <= highest,
                "values keep their sign and stay within the largest");
    }
}

template <typename V, typename Curve>
void test_as(const Curve& curve, Bytes payload, std::size_t kept, bool permuted) {
    Exact<V> values(kept);
    const Status status = decode(curve, payload, permuted, values.span());
    require(status.ok() || status.fault == Fault::corrupt || status.fault == Fault::truncated, "faults are of bytes");
    if (!status.ok()) {
        return;
    }
    Exact<V> other(kept);
    const Exact<std::uint8_t> shorter(payload.part(0, payload.size - 1));
    require(decode(curve, shorter.view(), permuted, other.span()).fault == Fault::truncated, "a byte less is told");
    Exact<std::uint8_t> longer(payload.size + 1);
    std::copy(payload.begin(), payload.end(), longer.span().begin());
    longer.span()[payload.size] = 0;
    require(decode(curve, longer.view(), permuted, other.span()).fault == Fault::corrupt, "a byte more is told");
    require(are_finite(values.view()) || payload[0] == 1, "values are finite unless they are said not to be");
    if (payload[0] != 1) {
        encode_again(curve, values.view());
    }
}

template <typename V>
void test_curves(Bytes payload, std::size_t kept, std::uint64_t flags, unsigned degree) {
    const bool permuted = (flags & 2) != 0;
    if ((flags & 4) != 0) {
        test_as<V>(DoubleExponential{}, payload, kept, permuted);
    } else {
        test_as<V>(Polynomial{degree, static_cast<unsigned>(flags / 8)}, payload, kept, permuted);
    }
}

void test(Input input) {
    const std::size_t kept = input.take(2) % 1024;
    const std::uint64_t flags = input.take(1);
    const auto degree = static_cast<unsigned>(1 + input.take(1) % kMostDegree);
    const auto payload = input.rest();
    if ((flags & 1) != 0) {
        test_curves<double>(payload.view(), kept, flags, degree);
    } else {
        test_curves<float>(payload.view(), kept, flags, degree);
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test({data, size});
    return 0;
}
