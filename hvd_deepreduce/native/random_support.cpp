#include "random_support.hpp"

#include "random.hpp"

namespace deepreduce {

template <typename P>
void random_support(std::uint64_t key, std::uint64_t numel, Span<P> out, Span<std::uint64_t> marks) {
    // Where most are kept, those that are not are drawn: else the last ones would take long to hit upon.
    const bool dropped = out.size > numel / 2;
    const std::uint64_t wanted = dropped ? numel - out.size : out.size;
    std::uint64_t draw = 0;
    for (std::uint64_t marked = 0; marked < wanted; ++draw) {
        const std::uint64_t position = random_below(random_u64(key, draw), numel);
        const std::uint64_t bit = std::uint64_t{1} << (position % 64);
        marked += (marks[position / 64] & bit) == 0;
        marks[position / 64] |= bit;
    }
    std::size_t count = 0;
    for (std::size_t word = 0; word < marks.size && count < out.size; ++word) {
        std::uint64_t bits = dropped ? ~marks[word] : marks[word];
        for (; bits != 0 && count < out.size; bits &= bits - 1) {
            out[count++] = static_cast<P>(64 * word + static_cast<unsigned>(__builtin_ctzll(bits)));
        }
    }
}

template void random_support(std::uint64_t, std::uint64_t, Span<std::uint32_t>, Span<std::uint64_t>);
template void random_support(std::uint64_t, std::uint64_t, Span<std::uint64_t>, Span<std::uint64_t>);

}  // namespace deepreduce
