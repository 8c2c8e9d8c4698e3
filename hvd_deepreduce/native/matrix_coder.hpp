// The range coder of the matrix codec: FORMAT.md, 4.10, "Range code".
#pragma once

#include "bytes.hpp"
#include "matrix_tables.hpp"
#include "span.hpp"

namespace deepreduce::matrix {

constexpr std::uint64_t kLeastRange = std::uint64_t{1} << 48;
/// The last bytes of a code are zero more often than not; so many need not be sent.
constexpr unsigned kMostImplied = 7;

class RangeEncoder {
  public:
    explicit RangeEncoder(Span<std::uint8_t> out) : out_(out) {}

    void put(std::uint64_t before, std::uint64_t share) {
        const std::uint64_t part = range_ >> 32;
        add(part * before);
        range_ = part * share;
        // Half of all symbols shift once, in no order a processor could foresee: so that is no branch.
        shift(range_ < kLeastRange ? 16 : 0);
        while (range_ < kLeastRange) {
            shift(16);
        }
    }

    void finish() {
        const unsigned kept_bits = to_boundary(56) < range_ ? 8 : 16;
        add(to_boundary(64 - kept_bits));
        for (unsigned i = 8; i <= kept_bits; i += 8) {
            emit(static_cast<std::uint8_t>(low_ >> (64 - i)));
        }
    }

    bool full() const { return size_ > out_.size; }
    std::size_t size() const { return size_; }

  private:
    /// From low to the next multiple of 2**bits.
    std::uint64_t to_boundary(unsigned bits) const { return (0 - low_) & ((std::uint64_t{1} << bits) - 1); }

    /// Puts out the top bits, 16 or none.
    void shift(unsigned bits) {
        const auto top = static_cast<std::uint16_t>(low_ >> 48);
        if (out_.size >= 2 && size_ <= out_.size - 2) {
            store(out_.data + size_, __builtin_bswap16(top));
            size_ += bits / 8;
        } else if (bits != 0) {
            emit(static_cast<std::uint8_t>(top >> 8));
            emit(static_cast<std::uint8_t>(top & 0xff));
        }
        low_ <<= bits;
        range_ <<= bits;
    }

    void emit(std::uint8_t byte) {
        if (size_ < out_.size) {
            out_[size_] = byte;
        }
        ++size_;
    }

    void add(std::uint64_t amount) {
        low_ += amount;
        if (low_ >= amount || full()) {
            return;
        }
        for (std::size_t i = size_; i > 0 && ++out_[i - 1] == 0; --i) {
        }
    }

    Span<std::uint8_t> out_;
    std::size_t size_ = 0;
    std::uint64_t low_ = 0;
    std::uint64_t range_ = ~std::uint64_t{0};
};

/// Beyond the end all bytes are zero; whether as many were read as there are is asked at the end, and often enough
/// before that nobody waits for zeros to end.
class RangeDecoder {
  public:
    explicit RangeDecoder(Bytes in) : in_(in) {
        for (unsigned i = 0; i < 4; ++i) {
            shift(16);
        }
        range_ = ~std::uint64_t{0};
    }

    /// What the next symbol is known by, below kTotal; not below it in a code that no encoder writes.
    std::uint64_t value() {
        part_ = range_ >> 32;
        return code_ / part_;
    }

    /// Takes the symbol that `value` was for.
    void take(std::uint64_t before, std::uint64_t share) {
        code_ -= part_ * before;
        range_ = part_ * share;
        shift(range_ < kLeastRange ? 16 : 0);
        while (range_ < kLeastRange) {
            shift(16);
        }
    }

    bool overrun() const { return read_ > in_.size + kMostImplied; }
    bool ends_here() const { return read_ == in_.size + kMostImplied || read_ == in_.size + kMostImplied - 1; }

  private:
    /// Takes in as many bits, 16 or none.
    void shift(unsigned bits) {
        std::uint32_t next = 0;
        if (in_.size >= 2 && read_ <= in_.size - 2) {
            next = __builtin_bswap16(load<std::uint16_t>(in_.data + read_));
        } else if (read_ < in_.size) {
            next = std::uint32_t{in_[read_]} << 8;
        }
        code_ = code_ << bits | next >> (16 - bits);
        range_ <<= bits;
        read_ += bits / 8;
    }

    Bytes in_;
    std::size_t read_ = 0;
    std::uint64_t code_ = 0;
    std::uint64_t range_ = 0;
    std::uint64_t part_ = 0;
};

}  // namespace deepreduce::matrix
