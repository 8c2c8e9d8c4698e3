// Canonical Huffman codes of up to 256 symbols and 15 bits: FORMAT.md, 4.6.
#pragma once

#include <array>

#include "bitstream.hpp"
#include "status.hpp"

namespace deepreduce::huffman {

constexpr unsigned kSymbols = 256;
constexpr unsigned kLongest = 15;

using Weights = std::array<std::uint64_t, kSymbols>;
/// Of a symbol's word in bits; 0 for one that has none.
using Lengths = std::array<std::uint8_t, kSymbols>;

/// The lengths of the page, for weights whose sum is below 2**63. A symbol without weight has no word, one that is
/// alone has a word of one bit.
Lengths lengths_of(Weights weights);

/// Whether every sequence of bits is one of words, or one symbol alone has a word, of one bit.
bool is_code(const Lengths& lengths);

/// The words in the order of the bit stream.
std::array<std::uint16_t, kSymbols> words_of(const Lengths& lengths);

/// What the next bits of a stream begin with.
class Table {
  public:
    /// `length` is 0 where there is no such word.
    struct Entry {
        std::uint8_t symbol;
        std::uint8_t length;
    };

    /// For lengths that are a code.
    explicit Table(const Lengths& lengths);

    Entry operator[](std::uint64_t window) const { return entries_[window & mask_]; }

  private:
    std::uint64_t mask_ = 0;
    // As many as the longest word asks for are set.
    std::array<Entry, 1u << kLongest> entries_;
};

/// Fails unless nothing but zero padding follows what was taken of a stream.
Status finish(const char* where, Bytes payload, const BitReader& reader);

}  // namespace deepreduce::huffman
