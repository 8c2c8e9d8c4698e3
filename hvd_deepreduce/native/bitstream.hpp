// Bit streams of FORMAT.md, section 1: every byte is filled from its least significant bit upwards.
#pragma once

#include "bytes.hpp"
#include "span.hpp"

namespace deepreduce {

/// The lowest `count` bits of `value`; count < 64.
inline std::uint64_t low_bits(std::uint64_t value, unsigned count) { return value & ((std::uint64_t{1} << count) - 1); }

/// Appends fields. Counts on when the span is full but writes nothing beyond it, so that an empty span measures.
class BitWriter {
  public:
    explicit BitWriter(Span<std::uint8_t> out) : out_(out) {}

    /// Appends `count` bits, at most 56; `value` has no others set.
    void put(std::uint64_t value, unsigned count) {
        pending_ |= value << pending_count_;
        pending_count_ += count;
        const unsigned full = pending_count_ / 8;
        store_pending(full);
        position_ += full;
        pending_ >>= full * 8;
        pending_count_ %= 8;
    }

    /// Fills the last byte with zeros and returns the number of bits put.
    std::uint64_t finish() {
        store_pending(pending_count_ == 0 ? 0 : 1);
        return std::uint64_t{position_} * 8 + pending_count_;
    }

  private:
    void store_pending(unsigned count) {
        if (out_.size >= 8 && position_ <= out_.size - 8) {
            store(out_.data + position_, pending_);
            return;
        }
        for (unsigned i = 0; i < count && position_ + i < out_.size; ++i) {
            out_[position_ + i] = static_cast<std::uint8_t>(pending_ >> (8 * i));
        }
    }

    Span<std::uint8_t> out_;
    std::size_t position_ = 0;
    std::uint64_t pending_ = 0;
    unsigned pending_count_ = 0;
};

/// Reads fields. Beyond the end all bits are zero and `overrun` turns true, which callers ask before they believe what
/// they read.
class BitReader {
  public:
    static constexpr unsigned kWindow = 57;

    explicit BitReader(Bytes in) : in_(in) {}

    /// The next bits, of which the lowest kWindow are good; takes none.
    std::uint64_t peek() const {
        const std::uint64_t byte = bit_ / 8;
        if (in_.size >= 8 && byte <= in_.size - 8) {
            return load<std::uint64_t>(in_.data + byte) >> (bit_ % 8);
        }
        std::uint64_t window = 0;
        for (unsigned i = 0; i < 8 && byte + i < in_.size; ++i) {
            window |= std::uint64_t{in_[byte + i]} << (8 * i);
        }
        return window >> (bit_ % 8);
    }

    void skip(unsigned count) { bit_ += count; }

    /// The next `count` bits, at most kWindow.
    std::uint64_t take(unsigned count) {
        const std::uint64_t value = low_bits(peek(), count);
        skip(count);
        return value;
    }

    bool overrun() const { return bit_ > std::uint64_t{in_.size} * 8; }

    /// Whole bytes behind the last bit taken.
    std::uint64_t bytes_left() const { return in_.size - (bit_ + 7) / 8; }

    /// Whether the unused bits of the last byte taken from are zero.
    bool padding_is_zero() const { return bit_ % 8 == 0 || in_[bit_ / 8] >> (bit_ % 8) == 0; }

  private:
    Bytes in_;
    std::uint64_t bit_ = 0;
};

}  // namespace deepreduce
