// Value codecs `onebit` and `twobit`: FORMAT.md, 5.6 and 5.7. An input is kept in five bytes, a byte each for the value
// type, the settings (bit 0: two classes, bit 1: means) and the columns of the layer, of whose elements every third is
// kept, and the payload; no columns are one group. The top bit of kept asks for the largest number of one group.
#include "centroids.hpp"

#include <cmath>
#include <limits>

#include "bits.hpp"
#include "input.hpp"

namespace deepreduce::fuzz {
namespace {

template <typename V>
void decode_and_encode(Bytes payload, std::uint64_t kept, Groups groups, CentroidSettings settings) {
    Exact<V> values(kept);
    const Status status = centroids_decode(payload, groups, settings, values.span());
    require(status.ok() || status.fault == Fault::corrupt, "of the right length, a payload is corrupt at most");
    const std::size_t head = sizeof(V) * settings.classes * groups.count;
    SlowReader fields(payload.part(head, payload.size - head));
    for (std::size_t i = 0; i < kept; ++i) {
        const std::uint64_t upper = settings.classes == 2 ? fields.take(1) : 0;
        const bool negative = fields.take(1) != 0;
        const std::uint64_t group = groups.of.size == 0 ? 0 : groups.of[i];
        const V centroid = load<V>(payload.data + sizeof(V) * (settings.classes * group + upper));
        const V expected = std::isnan(centroid) ? std::numeric_limits<V>::quiet_NaN() : negative ? -centroid : centroid;
        require(!status.ok() || same_bytes<V>(values.view().part(i, 1), {&expected, 1}),
                "values are those of the page");
    }
    require(status.ok() == fields.at_end(), "padding is zero, or the payload corrupt");
    if (!status.ok()) {
        return;
    }
    Exact<Tally<V>> tallies(groups.count);
    Exact<std::uint8_t> encoded(payload.size);
    centroids_encode(values.view(), groups, settings, tallies.span(), encoded.span());
    Exact<V> again(kept);
    require(centroids_decode(encoded.view(), groups, settings, again.span()).ok(), "what was encoded is accepted");
    for (std::size_t i = 0; i < kept; ++i) {
        const bool nan = std::isnan(again.view()[i]);
        require(nan || std::signbit(again.view()[i]) == std::signbit(values.view()[i]), "signs survive");
    }
}

void test(Input input) {
    std::uint64_t kept = input.take(5);
    const bool twice = input.take(1) % 2 != 0;
    const auto flags = static_cast<unsigned>(input.take(1));
    const CentroidSettings settings{(flags & 2u) != 0, 1 + (flags & 1u)};
    const std::size_t columns = input.take(1);
    const auto payload = input.rest();
    const std::size_t itemsize = twice ? 8 : 4;
    if (kept >> 39 != 0) {
        const std::size_t head = settings.classes * itemsize;
        kept = payload.size() < head ? 0 : 8 * (payload.size() - head) / settings.classes;
    }
    if (kept > 8 * payload.size()) {
        require(!centroids_check(payload.view(), kept, 1, itemsize, settings).ok(), "the check is that of the length");
        return;
    }
    Exact<std::uint32_t> of(columns == 0 ? 0 : kept);
    Groups groups{{}, 1};
    if (columns != 0) {
        Exact<std::uint32_t> positions(kept);
        for (std::size_t i = 0; i < kept; ++i) {
            positions.span()[i] = static_cast<std::uint32_t>(3 * i);
        }
        Exact<std::uint32_t> ranks(columns);
        groups.count = group_columns(positions.view(), ranks.span(), of.span());
        groups.of = of.view();
        for (std::size_t i = 0; i < kept; ++i) {
            require(groups.of[i] < groups.count, "groups are numbered from 0 on");
            require(i < columns || groups.of[i] == groups.of[i - columns], "a column has one group");
        }
    }
    if (!centroids_check(payload.view(), kept, groups.count, itemsize, settings).ok()) {
        return;
    }
    if (twice) {
        decode_and_encode<double>(payload.view(), kept, groups, settings);
    } else {
        decode_and_encode<float>(payload.view(), kept, groups, settings);
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test({data, size});
    return 0;
}
