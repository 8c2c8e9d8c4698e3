// Index codec `rice`: FORMAT.md, 4.4.
#include "rice.hpp"

#include "index_decoder.hpp"
#include "slow_rice.hpp"

namespace deepreduce::fuzz {
namespace {

struct Rice {
    /// An encoder may choose any divisors.
    static constexpr bool kCanonical = false;
    static constexpr std::uint64_t kDensest = 8;

    /// Any number of codes may have any length, but for a bit each at least.
    static void fit(Bytes payload, std::uint64_t, std::uint64_t& kept) { kept %= payload.size * 8 + 1; }

    static Status check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
        return rice_check(payload, kept, numel);
    }

    template <typename P>
    static Status decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
        const Status status = rice_decode(payload, numel, positions);
        std::vector<std::uint64_t> expected;
        require(status.ok() == SlowRice(payload, positions.size, numel).decode(expected),
                "what the page accepts is accepted, and nothing else");
        require(!status.ok() || std::equal(expected.begin(), expected.end(), positions.begin(), positions.end()),
                "positions are those of the page");
        return status;
    }

    template <typename P>
    static Exact<std::uint8_t> encode(Span<const P> positions, std::uint64_t numel) {
        std::uint64_t measured = 0;
        std::uint64_t written = 0;
        require(rice_encode(positions, numel, Span<std::uint8_t>{}, measured).ok(), "a support can be measured");
        Exact<std::uint8_t> payload((measured + 7) / 8);
        require(payload.size() <= rice_capacity(positions.size, numel), "a payload fits the capacity");
        require(rice_encode(positions, numel, payload.span(), written).ok(), "a support can be encoded");
        require(written == measured, "as many bits are written as were measured");
        return payload;
    }
};

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test_index_decoder<deepreduce::fuzz::Rice>({data, size});
    return 0;
}
