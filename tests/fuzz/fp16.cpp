// Value codec `fp16`: FORMAT.md, 5.2.
#include "half_decoder.hpp"

namespace deepreduce::fuzz {
namespace {

struct Fp16 {
    static constexpr std::uint32_t kInfinity = 0x7c00u;
    static constexpr std::uint32_t kNan = 0x7e00u;

    static Status check(Bytes payload, std::uint64_t kept) { return fp16_check(payload, kept); }

    template <typename V>
    static Status decode(Bytes payload, Span<V> values) {
        return fp16_decode(payload, values);
    }

    template <typename V>
    static void encode(Span<const V> values, Span<std::uint8_t> out) {
        fp16_encode(values, out);
    }
};

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test_half_decoder<deepreduce::fuzz::Fp16>({data, size});
    return 0;
}
