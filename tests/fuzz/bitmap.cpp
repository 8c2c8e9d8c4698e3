// Index codec `bitmap`: FORMAT.md, 4.3.
#include "bitmap.hpp"

#include "index_decoder.hpp"

namespace deepreduce::fuzz {
namespace {

struct Bitmap {
    /// The length is fixed and bits beyond numel are zero.
    static constexpr bool kCanonical = true;
    static constexpr std::uint64_t kDensest = 8;

    static void fit(Bytes payload, std::uint64_t& numel, std::uint64_t& kept) {
        numel = payload.size * 8 - std::min<std::uint64_t>(payload.size, numel % 8);
        kept = 0;
        for (const std::uint8_t byte : payload) {
            kept += static_cast<unsigned>(__builtin_popcount(byte));
        }
    }

    static Status check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
        return bitmap_check(payload, kept, numel);
    }

    template <typename P>
    static Status decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
        return bitmap_decode(payload, numel, positions);
    }

    template <typename P>
    static Exact<std::uint8_t> encode(Span<const P> positions, std::uint64_t numel) {
        Exact<std::uint8_t> payload(bitmap_size(numel));
        require(bitmap_encode(positions, numel, payload.span()).ok(), "a support can be encoded");
        return payload;
    }
};

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test_index_decoder<deepreduce::fuzz::Bitmap>({data, size});
    return 0;
}
