// FORMAT.md, 4.4, read word by word: what the kernel's decoder is compared with.
#pragma once

#include <vector>

#include "bits.hpp"

namespace deepreduce::fuzz {

class SlowRice {
  public:
    SlowRice(Bytes payload, std::uint64_t kept, std::uint64_t numel) : reader_(payload), kept_(kept), numel_(numel) {}

    /// False for what a decoder must reject. kept is at most numel and the bits there are.
    bool decode(std::vector<std::uint64_t>& positions) {
        choose_first_divisor();
        std::uint64_t next = 0;
        for (std::uint64_t i = 0; i < kept_; ++i) {
            std::uint64_t gap = 0;
            if ((i % 128 == 0 && !take_change()) || !take_gap(gap) || reader_.overrun() || next + gap >= numel_) {
                return false;
            }
            positions.push_back(next + gap);
            next += gap + 1;
        }
        return reader_.at_end();
    }

  private:
    static constexpr std::int64_t kEntries = 131;

    static std::uint64_t m(std::int64_t d) { return static_cast<std::uint64_t>(d < 3 ? d + 1 : 4 + (d - 3) % 4); }
    static unsigned s(std::int64_t d) { return static_cast<unsigned>(d < 3 ? 0 : (d - 3) / 4); }
    static std::uint64_t divisor(std::int64_t d) { return m(d) << s(d); }

    void choose_first_divisor() {
        if (kept_ != 0) {
            const std::uint64_t t = (11 * (numel_ - kept_) + 8 * kept_) / (16 * kept_);
            while (d_ + 1 < kEntries && divisor(d_ + 1) <= t) {
                ++d_;
            }
        }
    }

    bool take_change() {
        if (reader_.take(1) == 0) {
            return true;
        }
        const std::int64_t sign = reader_.take(1) == 1 ? -1 : 1;
        std::int64_t amount = 1;
        while (reader_.take(1) == 1) {
            ++amount;
        }
        d_ += sign * amount;
        return d_ >= 0 && d_ < kEntries;
    }

    bool take_gap(std::uint64_t& gap) {
        unsigned q = 0;
        while (q < 24 && reader_.take(1) == 1) {
            ++q;
        }
        if (q == 24) {
            unsigned width = 1;
            while ((numel_ - 1) >> width != 0) {
                ++width;
            }
            gap = reader_.take(width);
            return gap / divisor(d_) >= 24;
        }
        const std::uint64_t r = take_remainder();
        gap = (q * m(d_) + r) << s(d_);
        gap += reader_.take(s(d_));
        return true;
    }

    std::uint64_t take_remainder() {
        unsigned b = 0;
        while (std::uint64_t{1} << b < m(d_)) {
            ++b;
        }
        if (b == 0) {
            return 0;
        }
        const std::uint64_t c = (std::uint64_t{1} << b) - m(d_);
        const std::uint64_t r = reader_.take(b - 1);
        return r < c ? r : 2 * r + reader_.take(1) - c;
    }

    SlowReader reader_;
    std::uint64_t kept_;
    std::uint64_t numel_;
    std::int64_t d_ = 0;
};

}  // namespace deepreduce::fuzz
