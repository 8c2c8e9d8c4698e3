// Range coder of FORMAT.md, 5.10: integers alone, and a payload that a decoder reads to its very last byte.
#pragma once

#include "bytes.hpp"
#include "span.hpp"

namespace deepreduce {

constexpr std::uint32_t kRangeFloor = 1u << 24;
constexpr unsigned kRangeTail = 4;

/// How likely the next bit is 0, in 65536ths; never below 256 of them for either bit.
struct BitModel {
    std::uint32_t zero = 1u << 15;

    void saw(bool bit) {
        zero = bit ? zero - (zero >> 5) : zero + ((65536u - zero) >> 5);
        zero = zero < 256u ? 256u : zero > 65280u ? 65280u : zero;
    }
};

/// Writes to `out`, which must have room for all that is coded.
class RangeEncoder {
  public:
    explicit RangeEncoder(Span<std::uint8_t> out) : begin_(out.data), next_(out.data) {}

    /// Narrows the range to `size` of 2^bits parts from `start` on; bits at most 12.
    void put(std::uint32_t start, std::uint32_t size, unsigned bits) {
        const std::uint32_t part = range_ >> bits;
        add(part * start);
        range_ = part * size;
        normalise();
    }

    /// `count` bits, the lowest twelve first.
    void put_bits(std::uint64_t value, unsigned count) {
        for (; count > 12; count -= 12, value >>= 12) {
            put(value & 4095, 1, 12);
        }
        if (count > 0) {
            put(static_cast<std::uint32_t>(value & ((1u << count) - 1)), 1, count);
        }
    }

    void put_bit(BitModel& model, bool bit) {
        const std::uint32_t zero = (range_ >> 16) * model.zero;
        if (bit) {
            add(zero);
            range_ -= zero;
        } else {
            range_ = zero;
        }
        model.saw(bit);
        normalise();
    }

    /// Bytes written in all.
    std::size_t finish() {
        for (unsigned i = 0; i < kRangeTail; ++i) {
            shift();
        }
        return static_cast<std::size_t>(next_ - begin_);
    }

  private:
    void add(std::uint32_t amount) {
        low_ += amount;
        if (low_ < amount) {
            // What is coded is below 1, so a carry stops before the first byte.
            for (std::uint8_t* byte = next_ - 1; ++*byte == 0; --byte) {
            }
        }
    }
    void shift() {
        *next_++ = static_cast<std::uint8_t>(low_ >> 24);
        low_ <<= 8;
    }
    void normalise() {
        while (range_ < kRangeFloor) {
            shift();
            range_ <<= 8;
        }
    }

    std::uint8_t* begin_;
    std::uint8_t* next_;
    std::uint32_t low_ = 0;
    std::uint32_t range_ = ~0u;
};

/// Reads what the encoder wrote. Beyond the end it reads zeros, and `truncated` says so; what no encoder writes is told
/// by `corrupt`. Both stay set, and every result stays in bounds.
class RangeDecoder {
  public:
    explicit RangeDecoder(Bytes payload) : next_(payload.data), end_(payload.data + payload.size) {
        for (unsigned i = 0; i < kRangeTail; ++i) {
            shift();
        }
    }

    /// Which of 2^bits parts comes next; to be followed by `take`.
    std::uint32_t peek(unsigned bits) {
        part_ = range_ >> bits;
        const std::uint32_t place = code_ / part_;
        const std::uint32_t last = (1u << bits) - 1;
        if (place > last) {
            corrupt_ = true;
            // As `take` subtracts no more than last * part, the code would stay beyond its range.
            code_ = 0;
            return 0;
        }
        return place;
    }

    void take(std::uint32_t start, std::uint32_t size) {
        code_ -= part_ * start;
        range_ = part_ * size;
        normalise();
    }

    std::uint64_t take_bits(unsigned count) {
        std::uint64_t value = 0;
        unsigned shift = 0;
        for (; count > 12; count -= 12, shift += 12) {
            value |= static_cast<std::uint64_t>(take_field(12)) << shift;
        }
        return count > 0 ? value | static_cast<std::uint64_t>(take_field(count)) << shift : value;
    }

    bool take_bit(BitModel& model) {
        const std::uint32_t zero = (range_ >> 16) * model.zero;
        const bool bit = code_ >= zero;
        if (bit) {
            code_ -= zero;
            range_ -= zero;
        } else {
            range_ = zero;
        }
        model.saw(bit);
        normalise();
        return bit;
    }

    bool truncated() const { return missing_ > 0; }
    /// An encoder ends on the lower end of its range.
    bool corrupt() const { return corrupt_ || code_ != 0; }
    std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }

  private:
    std::uint32_t take_field(unsigned bits) {
        const std::uint32_t field = peek(bits);
        take(field, 1);
        return field;
    }
    void shift() {
        std::uint32_t byte = 0;
        if (next_ < end_) {
            byte = *next_++;
        } else {
            missing_ = 1;
        }
        code_ = code_ << 8 | byte;
    }
    void normalise() {
        while (range_ < kRangeFloor) {
            shift();
            range_ <<= 8;
        }
    }

    const std::uint8_t* next_;
    const std::uint8_t* end_;
    std::uint32_t code_ = 0;
    std::uint32_t range_ = ~0u;
    std::uint32_t part_ = 0;
    std::uint32_t missing_ = 0;
    bool corrupt_ = false;
};

}  // namespace deepreduce
