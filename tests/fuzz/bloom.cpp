// Index codec `bloom`: FORMAT.md, 4.9 and 4.12. An input is numel in two bytes, kept in five, a byte whose lowest bit
// asks for the filter of 4.12, and the payload. The top bit of kept asks for a number that fits the payload's filter.
#include "bloom.hpp"

#include "bitmap.hpp"
#include "bloom_conflicts.hpp"
#include "input.hpp"

namespace deepreduce::fuzz {
namespace {

bool is_set(Bytes filter, std::uint64_t bit) { return (filter[bit / 8] >> (bit % 8) & 1) != 0; }

bool has_all(Bytes filter, Span<const std::uint64_t> places) {
    return std::all_of(places.begin(), places.end(), [=](std::uint64_t place) { return is_set(filter, place); });
}

/// The positions reported, which must be those that have all of their bits.
template <typename P>
Exact<P> members(Bytes filter, unsigned hashes, std::uint64_t numel) {
    Exact<std::uint8_t> unrolled(filter.size + bloom::kUnrolled);
    std::copy(filter.begin(), filter.end(), unrolled.span().begin());
    std::copy_n(filter.begin(), bloom::kUnrolled, unrolled.span().begin() + filter.size);
    Exact<std::uint8_t> bitmap(bitmap_size(numel));
    Exact<P> found(bloom::members(unrolled.view(), hashes, numel, bitmap.span()));
    require(bitmap_decode(bitmap.view(), numel, found.span()).ok(), "as many are marked as are counted");
    Exact<std::uint64_t> places(hashes);
    for (std::uint64_t position = 0; position < numel; ++position) {
        const P own = static_cast<P>(position);
        bloom::places(Span<const P>{&own, 1}, hashes, filter.size, places.span());
        require(is_set(bitmap.view(), position) == has_all(filter, places.view()), "members have all of their bits");
    }
    return found;
}

void choose(Span<const std::uint64_t> places, unsigned hashes, std::uint64_t bits, std::uint64_t kept,
            std::uint64_t key) {
    auto taken = Exact<std::uint8_t>::zeros(places.size / hashes);
    Exact<std::uint32_t> sizes(bits);
    Exact<bloom::Conflict> conflicts(places.size);
    const auto status =
        bloom::choose_by_conflicts(places, hashes, kept, key, sizes.span(), conflicts.span(), taken.span());
    require(status.ok(), "of enough members some are chosen");
    require(static_cast<std::uint64_t>(std::count(taken.view().begin(), taken.view().end(), 1)) == kept,
            "as many are chosen as were kept");
}

template <typename P>
void decode(const bloom::Head& head, Bytes filter, std::uint64_t kept, std::uint64_t numel) {
    const auto found = members<P>(filter, head.hashes, numel);
    if (found.size() < kept) {
        return;
    }
    Exact<std::uint64_t> places(found.size() * head.hashes);
    bloom::places(found.view(), head.hashes, filter.size, places.span());
    choose(places.view(), head.hashes, 8 * filter.size, kept, head.key);
    auto again = Exact<std::uint8_t>::zeros(filter.size);
    require(bloom::insert(found.view(), numel, head.hashes, again.span()).ok(), "members can be encoded");
    for (std::size_t i = 0; i < filter.size; ++i) {
        require((again.view()[i] & ~filter[i]) == 0, "members set no other bits");
    }
    const auto all = members<P>(again.view(), head.hashes, numel);
    require(same_bytes(all.view(), found.view()), "what was reported is reported again");
}

void require_length_to_the_byte(Bytes payload, bloom::Engine engine, std::uint64_t kept, std::uint64_t numel) {
    bloom::Head head;
    Bytes filter;
    for (std::size_t size = 0; size < payload.size; ++size) {
        const Exact<std::uint8_t> shorter(payload.part(0, size));
        require(bloom::read(shorter.view(), engine, kept, numel, head, filter).fault == Fault::truncated,
                "a payload that ends early is truncated");
    }
    auto longer = Exact<std::uint8_t>::zeros(payload.size + 1);
    std::copy(payload.begin(), payload.end(), longer.span().begin());
    require(bloom::read(longer.view(), engine, kept, numel, head, filter).fault == Fault::corrupt,
            "a payload with a byte left over is corrupt");
}

void test(Input input) {
    const std::uint64_t numel = input.take(2);
    const std::uint64_t kept_given = input.take(5);
    const auto engine = input.take(1) % 2 == 0 ? bloom::Engine::native : bloom::Engine::pybloom;
    const auto payload = input.rest();
    const std::uint64_t kept = kept_given >> 39 != 0 ? (payload.size() + 3) / 4 : kept_given;
    bloom::Head head;
    Bytes filter;
    const Status status = bloom::read(payload.view(), engine, kept, numel, head, filter);
    require(status.fault != Fault::setting, "what is wrong with a payload is not the caller's setting");
    if (!status.ok()) {
        return;
    }
    Exact<std::uint8_t> written(bloom::kHeadCapacity);
    const std::size_t length = bloom::write_head(head, written.span());
    require(length + filter.size == payload.size(), "a payload is a head and a filter");
    require(same_bytes(written.view().part(0, length), payload.view().part(0, length)), "a head has one form");
    require(kept <= numel && 8 * filter.size <= bloom::kMostBitsPerKept * kept + 7, "a filter is not too large");
    require_length_to_the_byte(payload.view(), engine, kept, numel);
    if (engine == bloom::Engine::native) {
        decode<std::uint32_t>(head, Exact<std::uint8_t>(filter).view(), kept, numel % 4096);
        decode<std::uint64_t>(head, Exact<std::uint8_t>(filter).view(), kept, numel % 512);
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test({data, size});
    return 0;
}
