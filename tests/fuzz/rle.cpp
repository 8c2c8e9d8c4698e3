// Index codec `rle`: FORMAT.md, 4.5.
#include "rle.hpp"

#include "index_decoder.hpp"
#include "varint.hpp"

namespace deepreduce::fuzz {
namespace {

struct Rle {
    /// No run but the first may be empty.
    static constexpr bool kCanonical = true;
    static constexpr std::uint64_t kDensest = 0;

    static void fit(Bytes payload, std::uint64_t& numel, std::uint64_t& kept) {
        VarintReader reader(payload);
        std::uint64_t zeros = 0;
        std::uint64_t ones = 0;
        for (kept = 0; kept < 1000 && reader.take(zeros) && reader.take(ones);) {
            kept += ones + 1;
        }
        numel = kMaxNumel - numel % 3;
    }

    static Status check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
        return rle_check(payload, kept, numel);
    }

    template <typename P>
    static Status decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
        return rle_decode(payload, numel, positions);
    }

    template <typename P>
    static Exact<std::uint8_t> encode(Span<const P> positions, std::uint64_t numel) {
        std::uint64_t measured = 0;
        std::uint64_t written = 0;
        require(rle_encode(positions, numel, Span<std::uint8_t>{}, measured).ok(), "a support can be measured");
        Exact<std::uint8_t> payload(measured);
        require(payload.size() <= rle_capacity(positions.size, numel), "a payload fits the capacity");
        require(rle_encode(positions, numel, payload.span(), written).ok(), "a support can be encoded");
        require(written == measured, "as much is written as was measured");
        return payload;
    }
};

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test_index_decoder<deepreduce::fuzz::Rle>({data, size});
    return 0;
}
