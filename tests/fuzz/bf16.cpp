// Value codec `bf16`: FORMAT.md, 5.3.
#include "half_decoder.hpp"

namespace deepreduce::fuzz {
namespace {

struct Bf16 {
    static constexpr std::uint32_t kInfinity = 0x7f80u;
    static constexpr std::uint32_t kNan = 0x7fc0u;

    static Status check(Bytes payload, std::uint64_t kept) { return bf16_check(payload, kept); }

    template <typename V>
    static Status decode(Bytes payload, Span<V> values) {
        return bf16_decode(payload, values);
    }

    template <typename V>
    static void encode(Span<const V> values, Span<std::uint8_t> out) {
        bf16_encode(values, out);
    }
};

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test_half_decoder<deepreduce::fuzz::Bf16>({data, size});
    return 0;
}
