// Index codec `delta`: FORMAT.md, 4.8.
#include "delta.hpp"

#include "index_decoder.hpp"

namespace deepreduce::fuzz {
namespace {

struct Delta {
    /// Every gap has one varint.
    static constexpr bool kCanonical = true;
    static constexpr std::uint64_t kDensest = 8;

    static void fit(Bytes payload, std::uint64_t, std::uint64_t& kept) {
        kept = 0;
        for (const std::uint8_t byte : payload) {
            kept += byte < 0x80;
        }
    }

    static Status check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
        return delta_check(payload, kept, numel);
    }

    template <typename P>
    static Status decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
        return delta_decode(payload, numel, positions);
    }

    template <typename P>
    static Exact<std::uint8_t> encode(Span<const P> positions, std::uint64_t numel) {
        std::uint64_t measured = 0;
        std::uint64_t written = 0;
        require(delta_encode(positions, numel, Span<std::uint8_t>{}, measured).ok(), "a support can be measured");
        Exact<std::uint8_t> payload(measured);
        require(payload.size() <= delta_capacity(positions.size, numel), "a payload fits the capacity");
        require(delta_encode(positions, numel, payload.span(), written).ok(), "a support can be encoded");
        require(written == measured, "as much is written as was measured");
        return payload;
    }
};

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test_index_decoder<deepreduce::fuzz::Delta>({data, size});
    return 0;
}
