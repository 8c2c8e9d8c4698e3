// The n-th largest magnitude of an array, by histograms of its digits: exact, and linear whatever the values are.
#pragma once

#include <algorithm>
#include <array>
#include <functional>

#include "magnitude.hpp"
#include "span.hpp"

namespace deepreduce {

/// The `kept` largest magnitudes are those above `limit` and the first `ties` of those equal to it.
template <typename B>
struct Cut {
    B limit;
    std::uint64_t ties;
};

inline std::uint32_t magnitude_bits(std::uint32_t bits) { return bits; }
inline std::uint64_t magnitude_bits(std::uint64_t bits) { return bits; }
inline std::uint32_t magnitude_bits(float value) { return magnitude(value); }
inline std::uint64_t magnitude_bits(double value) { return magnitude(value); }

/// Counts the digits of one place.
class DigitHistogram {
  public:
    static constexpr unsigned kDigitBits = 11;
    static constexpr std::uint32_t kDigits = 1u << kDigitBits;

    /// Counts (magnitude >> shift) - first where that is a digit.
    template <typename B, typename T>
    void count(Span<const T> values, unsigned shift, B first) {
        totals_.fill(0);
        for (std::size_t start = 0; start < values.size; start += kChunk) {
            count_chunk(values.part(start, std::min(kChunk, values.size - start)), shift, first);
        }
    }

    std::uint64_t operator[](std::size_t digit) const { return totals_[digit]; }

  private:
    /// Equal values would wait for each other at a single counter.
    static constexpr std::size_t kTables = 8;
    static constexpr std::size_t kSlots = 64;
    /// Below, more tables take longer to clear than they save.
    static constexpr std::size_t kWorthAll = 32768;
    /// So many fit a counter.
    static constexpr std::size_t kChunk = std::size_t{1} << 30;

    template <typename B, typename T>
    void count_chunk(Span<const T> values, unsigned shift, B first) {
        const std::size_t used = values.size < kWorthAll ? 1 : kTables;
        for (std::size_t table = 0; table < used; ++table) {
            tables_[table].fill(0);
        }
        std::size_t i = 0;
        for (; used == kTables && values.size - i >= kSlots; i += kSlots) {
            // All slots before all counters: the first loop becomes vector code.
            std::array<B, kSlots> slots;
            for (std::size_t k = 0; k < kSlots; ++k) {
                slots[k] = slot(values[i + k], shift, first);
            }
            for (std::size_t k = 0; k < kSlots; ++k) {
                ++tables_[k % kTables][slots[k]];
            }
        }
        for (; i < values.size; ++i) {
            const B digit = slot(values[i], shift, first);
            if (digit != kDigits) {
                ++tables_[0][digit];
            }
        }
        for (std::size_t table = 0; table < used; ++table) {
            for (std::size_t digit = 0; digit < kDigits; ++digit) {
                totals_[digit] += tables_[table][digit];
            }
        }
    }

    /// All that is no digit goes to one slot behind them.
    template <typename B, typename T>
    static B slot(T value, unsigned shift, B first) {
        return std::min<B>((magnitude_bits(value) >> shift) - first, kDigits);
    }

    std::array<std::array<std::uint32_t, kDigits + 1>, kTables> tables_;
    std::array<std::uint64_t, kDigits> totals_;
};

/// What find_cut does for a few values.
template <typename B, typename T>
Cut<B> find_cut_among_few(Span<const T> values, std::size_t kept, Span<B> copy) {
    std::transform(values.begin(), values.end(), copy.begin(), [](T value) { return magnitude_bits(value); });
    std::nth_element(copy.begin(), copy.begin() + kept - 1, copy.end(), std::greater<>());
    const B limit = copy[kept - 1];
    const auto larger = std::count_if(copy.begin(), copy.begin() + kept, [=](B bits) { return bits > limit; });
    return {limit, kept - static_cast<std::uint64_t>(larger)};
}

/// T is float, double or an integer that holds a magnitude; 0 < kept <= values.size.
template <typename T>
auto find_cut(Span<const T> values, std::uint64_t kept) -> Cut<decltype(magnitude_bits(T{}))> {
    using B = decltype(magnitude_bits(T{}));
    std::array<B, 512> few;
    if (values.size <= few.size()) {
        return find_cut_among_few<B>(values, kept, {few.data(), values.size});
    }
    constexpr unsigned kMagnitudeBits = 8 * sizeof(B) - 1;
    DigitHistogram histogram;
    B prefix = 0;
    for (unsigned done = 0;;) {
        const unsigned width = std::min(DigitHistogram::kDigitBits, kMagnitudeBits - done);
        done += width;
        const unsigned shift = kMagnitudeBits - done;
        prefix <<= width;
        histogram.count<B>(values, shift, prefix);
        std::uint32_t digit = (1u << width) - 1;
        while (histogram[digit] < kept) {
            kept -= histogram[digit--];
        }
        prefix |= digit;
        if (shift == 0) {
            return {prefix, kept};
        }
        if (histogram[digit] == kept && prefix != 0) {
            return {static_cast<B>((prefix << shift) - 1), 0};
        }
    }
}

}  // namespace deepreduce
