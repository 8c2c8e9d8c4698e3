#include "sorted_values.hpp"

#include <algorithm>
#include <array>

#include "bitstream.hpp"

namespace deepreduce {
namespace {

constexpr unsigned kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

template <typename V>
constexpr unsigned kPasses = (8 * sizeof(V) + kDigitBits - 1) / kDigitBits;

template <typename V>
std::size_t digit(Bits<V> key, unsigned pass) {
    return static_cast<std::size_t>(key >> (pass * kDigitBits)) & (kDigits - 1);
}

}  // namespace

template <typename V>
Span<const Ranked<V>> sort_falling(Span<const V> values, Span<Ranked<V>> first, Span<Ranked<V>> second) {
    // A place in a pass's output for each digit: counts first, and then where the digit begins.
    std::array<std::array<std::uint32_t, kDigits>, kPasses<V>> starts{};
    for (std::size_t i = 0; i < values.size; ++i) {
        const Bits<V> key = falling_key(values[i]);
        first[i] = {key, static_cast<std::uint32_t>(i)};
        for (unsigned pass = 0; pass < kPasses<V>; ++pass) {
            ++starts[pass][digit<V>(key, pass)];
        }
    }
    Span<Ranked<V>> from = first;
    Span<Ranked<V>> to = second;
    for (unsigned pass = 0; pass < kPasses<V> && values.size != 0; ++pass) {
        auto& start = starts[pass];
        if (start[digit<V>(from[0].key, pass)] == values.size) {
            continue;
        }
        std::uint32_t next = 0;
        for (std::uint32_t& count : start) {
            const std::uint32_t here = count;
            count = next;
            next += here;
        }
        for (std::size_t i = 0; i < values.size; ++i) {
            to[start[digit<V>(from[i].key, pass)]++] = from[i];
        }
        std::swap(from, to);
    }
    return from;
}

template <typename V>
std::size_t count_positive(Span<const Ranked<V>> sorted) {
    const auto* first_negative = std::partition_point(
        sorted.begin(), sorted.end(), [](const Ranked<V>& ranked) { return ranked.key < FloatBits<V>::kSign; });
    return static_cast<std::size_t>(first_negative - sorted.begin());
}

unsigned place_bits(std::uint64_t kept) { return kept < 2 ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(kept - 1)); }

template <typename V>
void pack_places(Span<const Ranked<V>> sorted, Span<std::uint8_t> out) {
    const unsigned width = place_bits(sorted.size);
    BitWriter writer(out);
    for (const Ranked<V>& ranked : sorted) {
        writer.put(ranked.place, width);
    }
    writer.finish();
}

template <typename V>
Status unpack_values(const char* where, Bytes packed, Span<const V> sorted, Span<std::uint64_t> seen, Span<V> values) {
    const unsigned width = place_bits(sorted.size);
    BitReader reader(packed);
    for (std::size_t i = 0; i < sorted.size; ++i) {
        const std::uint64_t place = reader.take(width);
        if (place >= sorted.size) {
            return failure(Fault::corrupt, where, "value {} has the place {} of {}", i, place, sorted.size);
        }
        const std::uint64_t bit = std::uint64_t{1} << (place % 64);
        if ((seen[place / 64] & bit) != 0) {
            return failure(Fault::corrupt, where, "value {} has the place {} of another", i, place);
        }
        seen[place / 64] |= bit;
        values[place] = sorted[i];
    }
    if (!reader.padding_is_zero()) {
        return failure(Fault::corrupt, where, "padding bits of the last byte, {}, are not zero",
                       packed[packed.size - 1]);
    }
    return {};
}

template Span<const Ranked<float>> sort_falling(Span<const float>, Span<Ranked<float>>, Span<Ranked<float>>);
template Span<const Ranked<double>> sort_falling(Span<const double>, Span<Ranked<double>>, Span<Ranked<double>>);
template std::size_t count_positive(Span<const Ranked<float>>);
template std::size_t count_positive(Span<const Ranked<double>>);
template void pack_places(Span<const Ranked<float>>, Span<std::uint8_t>);
template void pack_places(Span<const Ranked<double>>, Span<std::uint8_t>);
template Status unpack_values(const char*, Bytes, Span<const float>, Span<std::uint64_t>, Span<float>);
template Status unpack_values(const char*, Bytes, Span<const double>, Span<std::uint64_t>, Span<double>);

}  // namespace deepreduce
