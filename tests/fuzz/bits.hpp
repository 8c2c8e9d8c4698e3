// Bit streams of FORMAT.md, section 1, bit by bit: what the kernels' reader is compared with.
#pragma once

#include "span.hpp"

namespace deepreduce::fuzz {

class SlowReader {
  public:
    explicit SlowReader(Bytes in) : in_(in) {}

    /// The next `count` bits; zeros beyond the end.
    std::uint64_t take(unsigned count) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < count; ++i, ++bit_) {
            if (bit_ < in_.size * 8) {
                value |= std::uint64_t{in_[bit_ / 8] >> (bit_ % 8) & 1u} << i;
            }
        }
        return value;
    }

    bool overrun() const { return bit_ > in_.size * 8; }

    /// Whether nothing is left but the padding of the last byte.
    bool at_end() {
        const bool last_byte = !overrun() && in_.size * 8 - bit_ < 8;
        return last_byte && take(8) == 0;
    }

  private:
    Bytes in_;
    std::uint64_t bit_ = 0;
};

}  // namespace deepreduce::fuzz
