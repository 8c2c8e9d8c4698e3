// Value codec `quant`: FORMAT.md, 5.10. An input is kept in two bytes, a byte with the value type in bit 0 and unbiased
// in bit 1, the number of rows less one and the distance of positions less one in a byte each, and the payload.
#include "quant.hpp"

#include <cmath>

#include "input.hpp"

namespace deepreduce::fuzz {
namespace {

using Places = QuantPlaces<std::uint32_t>;

struct Matrix {
    std::uint64_t rows;
    std::uint64_t columns;
    Exact<std::uint32_t> positions;

    Matrix(std::uint64_t kept, std::uint64_t row_count, std::uint64_t distance)
        : rows(row_count), columns(kept * distance / rows + 1), positions(kept) {
        for (std::size_t i = 0; i < kept; ++i) {
            positions.span()[i] = static_cast<std::uint32_t>(i * distance);
        }
    }
};

/// As a receiver decodes: the check, and what it passes.
template <typename V>
Status decode(Bytes payload, const Matrix& matrix, const QuantSettings& settings, Span<V> values) {
    std::uint64_t agreed = 0;
    const Status status = quant_check<V>(payload, values.size, matrix.rows, matrix.columns, agreed);
    if (!status.ok()) {
        return status;
    }
    require(agreed == 0 || agreed <= 8 * values.size, "no more columns than values are worth");
    auto columns = Exact<std::int8_t>::zeros(agreed);
    return quant_decode(payload, Places{matrix.positions.view(), columns.span()}, settings, values);
}

template <typename V>
void encode_again(Span<const V> values, const Matrix& matrix, const QuantSettings& settings) {
    auto columns = Exact<std::int8_t>::zeros(quant_agreed_size(values.size, matrix.rows, matrix.columns));
    Exact<std::uint8_t> room(quant_capacity(values.size, sizeof(V)));
    const std::size_t size =
        quant_encode(values, Places{matrix.positions.view(), columns.span()}, settings, room.span());
    const Exact<std::uint8_t> payload(room.view().part(0, size));
    Exact<V> decoded(values.size);
    require(decode(payload.view(), matrix, settings, decoded.span()).ok(), "what was encoded is accepted");
    if (settings.unbiased) {
        return;
    }
    long double error = 0;
    long double norm = 0;
    for (std::size_t i = 0; i < values.size; ++i) {
        const long double value = values[i];
        const long double off = decoded.view()[i] - value;
        error += off * off;
        norm += value * value;
    }
    const long double asked = settings.error;
    require(!(error > asked * asked * norm), "the error is not above the one asked for");
}

template <typename V>
void test_as(Bytes payload, const Matrix& matrix, const QuantSettings& settings) {
    Exact<V> values(matrix.positions.size());
    const Status status = decode(payload, matrix, settings, values.span());
    require(status.ok() || status.fault == Fault::corrupt || status.fault == Fault::truncated, "faults are of bytes");
    if (!status.ok()) {
        return;
    }
    Exact<V> other(values.size());
    const Exact<std::uint8_t> shorter(payload.part(0, payload.size - 1));
    require(decode(shorter.view(), matrix, settings, other.span()).fault == Fault::truncated, "a byte less is told");
    Exact<std::uint8_t> longer(payload.size + 1);
    std::copy(payload.begin(), payload.end(), longer.span().begin());
    longer.span()[payload.size] = 0;
    require(decode(longer.view(), matrix, settings, other.span()).fault == Fault::corrupt, "a byte more is told");
    bool finite = true;
    for (const V value : values.view()) {
        finite = finite && is_finite(value);
    }
    require(finite || payload[0] == 1, "values are finite unless they are said not to be");
    encode_again(values.view(), matrix, settings);
}

void test(Input input) {
    const std::uint64_t kept = input.take(2) % 4096;
    const std::uint64_t flags = input.take(1);
    const std::uint64_t rows = 1 + input.take(1);
    const Matrix matrix(kept, rows, 1 + input.take(1));
    const QuantSettings settings{flags & 4 ? 0.001 : 0.1, (flags & 2) != 0, kept};
    const auto payload = input.rest();
    if (flags & 1) {
        test_as<double>(payload.view(), matrix, settings);
    } else {
        test_as<float>(payload.view(), matrix, settings);
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test({data, size});
    return 0;
}
