// Index codec `huffman(of='gaps')`: FORMAT.md, 4.7.
#include "huffman_gaps.hpp"

#include "index_decoder.hpp"

namespace deepreduce::fuzz {
namespace {

struct HuffmanGaps {
    /// An encoder may choose any code.
    static constexpr bool kCanonical = false;
    static constexpr std::uint64_t kDensest = 8;

    static void fit(Bytes payload, std::uint64_t, std::uint64_t& kept) { kept %= payload.size * 8 + 1; }

    static Status check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
        return huffman_gaps_check(payload, kept, numel);
    }

    template <typename P>
    static Status decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
        return huffman_gaps_decode(payload, numel, positions);
    }

    template <typename P>
    static Exact<std::uint8_t> encode(Span<const P> positions, std::uint64_t numel) {
        std::uint64_t measured = 0;
        std::uint64_t written = 0;
        require(huffman_gaps_encode(positions, numel, Span<std::uint8_t>{}, measured).ok(),
                "a support can be measured");
        Exact<std::uint8_t> payload((measured + 7) / 8);
        require(payload.size() <= huffman_gaps_capacity(positions.size, numel), "a payload fits the capacity");
        require(huffman_gaps_encode(positions, numel, payload.span(), written).ok(), "a support can be encoded");
        require(written == measured, "as much is written as was measured");
        return payload;
    }
};

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test_index_decoder<deepreduce::fuzz::HuffmanGaps>({data, size});
    return 0;
}
