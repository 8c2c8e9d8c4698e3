// Varints of FORMAT.md, section 1, as index codecs use them: of five bytes at most, enough for any position.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

constexpr unsigned kVarintBytes = 5;

inline unsigned varint_size(std::uint64_t value) {
    unsigned size = 1;
    for (; value >= 0x80; value >>= 7) {
        ++size;
    }
    return size;
}

/// Appends varints. Counts on when the span is full but writes nothing beyond it.
class VarintWriter {
  public:
    explicit VarintWriter(Span<std::uint8_t> out) : out_(out) {}

    void put(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) {
            put_byte(static_cast<std::uint8_t>(value | 0x80));
        }
        put_byte(static_cast<std::uint8_t>(value));
    }

    std::uint64_t size() const { return position_; }

  private:
    void put_byte(std::uint8_t byte) {
        if (position_ < out_.size) {
            out_[position_] = byte;
        }
        ++position_;
    }

    Span<std::uint8_t> out_;
    std::size_t position_ = 0;
};

class VarintReader {
  public:
    explicit VarintReader(Bytes in, std::size_t position = 0) : in_(in), position_(position) {}

    std::size_t position() const { return position_; }

    /// Reads the next value, below 2**35; false, and `failure` says why, where there is none.
    bool take(std::uint64_t& value) {
        value = 0;
        start_ = position_;
        for (unsigned i = 0; i < kVarintBytes; ++i) {
            if (position_ == in_.size) {
                return false;
            }
            const std::uint8_t byte = in_[position_++];
            value |= std::uint64_t{byte & 0x7fu} << (7 * i);
            if (byte < 0x80) {
                return i == 0 || byte != 0;
            }
        }
        return false;
    }

    /// What was wrong with the varint that could not be read.
    Status failure(const char* where) const {
        const std::size_t size = position_ - start_;
        if (size != 0 && in_[position_ - 1] == 0) {
            return deepreduce::failure(Fault::corrupt, where, "varint at byte {} is not in its shortest form", start_);
        }
        if (size == kVarintBytes) {
            return deepreduce::failure(Fault::corrupt, where, "varint at byte {} is longer than {} bytes", start_,
                                       kVarintBytes);
        }
        return deepreduce::failure(Fault::truncated, where, "payload of {} bytes ends within the varint at byte {}",
                                   in_.size, start_);
    }

    /// Fails where bytes are left.
    Status finish(const char* where) const {
        return position_ == in_.size
                   ? Status{}
                   : deepreduce::failure(Fault::corrupt, where, "payload of {} bytes; {} are left over", in_.size,
                                         in_.size - position_);
    }

  private:
    Bytes in_;
    std::size_t position_;
    std::size_t start_ = 0;
};

}  // namespace deepreduce
