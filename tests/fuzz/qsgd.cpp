// Value codec `qsgd`: FORMAT.md, 5.4. An input is kept in five bytes, a byte each for the value type and the bits, the
// bucket in three, and the payload. The top bit of kept asks for a number that the payload has the length of, if any.
#include "qsgd.hpp"

#include <cmath>
#include <limits>

#include "bits.hpp"
#include "input.hpp"

namespace deepreduce::fuzz {
namespace {

/// A value as the page has it: sign * norm * level / s, and every NaN the positive quiet one.
template <typename V>
V expected_value(float norm, std::uint64_t field, unsigned bits) {
    const std::uint64_t sign = field >> (bits - 1);
    const std::uint64_t level = field - (sign << (bits - 1));
    const double s = std::exp2(bits - 1) - 1;
    const V size = static_cast<V>(static_cast<double>(norm) * static_cast<double>(level) / s);
    require(is_finite(size) || !is_finite(norm), "a finite norm decodes to finite values");
    return std::isnan(size) ? std::numeric_limits<V>::quiet_NaN() : sign != 0 ? -size : size;
}

template <typename V>
void decode_and_encode(Bytes payload, std::uint64_t kept, QsgdSettings settings) {
    Exact<V> values(kept);
    const Status status = qsgd_decode(payload, settings, values.span());
    require(status.ok() || status.fault == Fault::corrupt, "of the right length, a payload is corrupt at most");
    const std::size_t norms = 4 * ((kept + settings.bucket - 1) / settings.bucket);
    SlowReader fields(payload.part(norms, payload.size - norms));
    for (std::size_t i = 0; i < kept; ++i) {
        const auto norm = load<float>(payload.data + i / settings.bucket * 4);
        const V expected = expected_value<V>(norm, fields.take(settings.bits), settings.bits);
        require(!status.ok() || same_bytes<V>(values.view().part(i, 1), {&expected, 1}),
                "values are those of the page");
    }
    require(status.ok() == fields.at_end(), "padding is zero, or the payload corrupt");
    if (!status.ok()) {
        return;
    }
    Exact<std::uint8_t> encoded(qsgd_size(kept, settings));
    qsgd_encode(values.view(), settings, kept, encoded.span());
    require(qsgd_decode(encoded.view(), settings, values.span()).ok(), "what was encoded is accepted");
}

void test(Input input) {
    std::uint64_t kept = input.take(5);
    const bool twice = input.take(1) % 2 != 0;
    QsgdSettings settings{};
    settings.bits = static_cast<unsigned>(2 + input.take(1) % 15);
    settings.bucket = 1 + input.take(3) % (1u << 20);
    const auto payload = input.rest();
    if (kept >> 39 != 0) {
        kept = 0;
        while (qsgd_size(kept, settings) < payload.size()) {
            ++kept;
        }
    }
    if (!qsgd_check(payload.view(), kept, settings).ok()) {
        return;
    }
    require(kept <= payload.size() * 4, "memory is reserved for what the bytes can hold");
    if (twice) {
        decode_and_encode<double>(payload.view(), kept, settings);
    } else {
        decode_and_encode<float>(payload.view(), kept, settings);
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test({data, size});
    return 0;
}
