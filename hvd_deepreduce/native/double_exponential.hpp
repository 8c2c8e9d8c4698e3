// Curves a e^(bx) + c e^(dx): FORMAT.md, 5.12.
#pragma once

#include <algorithm>
#include <array>

#include "fit_bytes.hpp"

namespace deepreduce {

/// Rates beyond this are not allowed, so that nothing overflows or underflows.
constexpr double kMostRate = 600;

/// e^z for |z| <= kMostRate, in no more than additions, multiplications and divisions: the same bits on every machine.
/// Right to about 2e-12.
inline double portable_exp(double z) {
    constexpr double kToInteger = 6755399441055744.0;  // 1.5 * 2**52: what is added to it is rounded to an integer
    const double shifted = z * 0x1.71547652b82fep+0 + kToInteger;
    const double octaves = shifted - kToInteger;
    const double rest = (z - octaves * 0x1.62e42feep-1) - octaves * 0x1.a39ef35793c76p-33;
    double sum = 1;
    for (int j = 10; j > 0; --j) {
        sum = 1 + rest * sum / static_cast<double>(j);
    }
    // The lowest bits of `shifted` are that integer: an exponent field without a conversion, which few machines have
    // for several numbers at a time.
    const std::uint64_t power = (load<std::uint64_t>(&shifted) << 52) + (std::uint64_t{1023} << 52);
    return sum * load<double>(&power);
}

/// How many points of a curve are worked out at a time.
constexpr std::size_t kExponentialChunk = 256;

/// Up to two terms; without any, a straight line.
struct Exponentials {
    std::uint8_t terms = 0;
    std::array<float, 2> factors{};
    std::array<float, 2> rates{};
};

/// Heights of `count` evenly spaced points, those from `start` on.
void evaluate(const Exponentials& curve, double lowest, std::size_t count, std::size_t start, Span<double> heights);

class DoubleExponential {
  public:
    static constexpr const char* kWhere = "fit_dexp";

    static std::uint64_t capacity(std::uint64_t) { return 1 + 4 * sizeof(float); }

    /// Writes the parameters of a falling curve of heights from 1 to `lowest`.
    void encode(Span<const double> heights, double lowest, ByteWriter& writer) const;

    void check(ByteTaker& taker, std::uint64_t) const { take(taker); }

    /// Calls use(start, heights) for all of `count` points, some at a time; for parameters that passed the check.
    template <typename Use>
    void decode(ByteTaker& taker, std::size_t count, double lowest, Use use) const {
        const Exponentials curve = take(taker);
        std::array<double, kExponentialChunk> heights;
        for (std::size_t start = 0; start < count; start += kExponentialChunk) {
            const Span<double> chunk{heights.data(), std::min(kExponentialChunk, count - start)};
            evaluate(curve, lowest, count, start, chunk);
            use(start, Span<const double>(chunk));
        }
    }

  private:
    static Exponentials take(ByteTaker& taker);
};

}  // namespace deepreduce
