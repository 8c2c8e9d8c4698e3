// Index codec `raw`: FORMAT.md, 4.1.
#include "index_decoder.hpp"

namespace deepreduce::fuzz {
namespace {

struct Raw {
    static constexpr bool kCanonical = true;
    static constexpr std::uint64_t kDensest = 8;

    static void fit(Bytes payload, std::uint64_t numel, std::uint64_t& kept) {
        kept = payload.size / (numel <= kMaxNarrow ? 4 : 8);
    }

    static Status check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
        return raw_positions_check(payload, kept, numel);
    }

    template <typename P>
    static Status decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
        return raw_positions_decode(payload, numel, positions);
    }

    template <typename P>
    static Exact<std::uint8_t> encode(Span<const P> positions, std::uint64_t) {
        return Exact<std::uint8_t>(
            Bytes{reinterpret_cast<const std::uint8_t*>(positions.data), positions.size * sizeof(P)});
    }
};

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test_index_decoder<deepreduce::fuzz::Raw>({data, size});
    return 0;
}
