// The n-th largest magnitude of an array, by histograms of its digits: exact, and linear whatever the values are.
#pragma once

#include <algorithm>
#include <array>

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
            for (auto& table : tables_) {
                table.fill(0);
            }
            const auto chunk = values.part(start, std::min(kChunk, values.size - start));
            std::size_t i = 0;
            // Equal values would wait for each other at a single counter.
            for (; i + kTables <= chunk.size; i += kTables) {
                for (std::size_t table = 0; table < kTables; ++table) {
                    ++tables_[table][slot(chunk[i + table], shift, first)];
                }
            }
            for (; i < chunk.size; ++i) {
                ++tables_[0][slot(chunk[i], shift, first)];
            }
            for (std::size_t digit = 0; digit < kDigits; ++digit) {
                for (const auto& table : tables_) {
                    totals_[digit] += table[digit];
                }
            }
        }
    }

    std::uint64_t operator[](std::size_t digit) const { return totals_[digit]; }

  private:
    static constexpr std::size_t kTables = 4;
    static constexpr std::size_t kChunk = std::size_t{1} << 30;

    /// All that is no digit goes to one slot behind them, without a branch.
    template <typename B, typename T>
    static std::size_t slot(T value, unsigned shift, B first) {
        return std::min<B>((magnitude_bits(value) >> shift) - first, kDigits);
    }

    std::array<std::array<std::uint32_t, kDigits + 1>, kTables> tables_;
    std::array<std::uint64_t, kDigits> totals_;
};

/// T is float, double or an integer that holds a magnitude; 0 < kept <= values.size.
template <typename T>
auto find_cut(Span<const T> values, std::uint64_t kept) -> Cut<decltype(magnitude_bits(T{}))> {
    using B = decltype(magnitude_bits(T{}));
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
