// Curves of polynomials, piece by piece: FORMAT.md, 5.11.
#pragma once

#include <algorithm>
#include <array>

#include "fit_bytes.hpp"

namespace deepreduce {

constexpr unsigned kMostDegree = 9;
constexpr unsigned kMostSegments = 1024;
/// Of those that the curve itself asks for.
constexpr unsigned kMostOwnSegments = 32;
/// How many points of a curve are worked out at a time.
constexpr std::size_t kChunk = 256;

/// Polynomials that are orthogonal on evenly spaced points of -1 ... 1, by their recurrence
/// p[k+1] = x p[k] - beta[k] p[k-1] (Gram; also discrete Chebyshev): least squares need no equations to be solved.
class Gram {
  public:
    Gram(std::size_t points, unsigned terms) : last_(static_cast<double>(points) - 1), terms_(terms) {
        const double count = static_cast<double>(points);
        norms_[0] = count;
        for (unsigned k = 1; k < terms; ++k) {
            const double square = static_cast<double>(k * k);
            betas_[k] = square * (count * count - square) / ((4 * square - 1) * (last_ * last_));
            norms_[k] = norms_[k - 1] * betas_[k];
        }
    }

    unsigned terms() const { return terms_; }
    /// The sum of p[k] squared over all points.
    double norm(unsigned k) const { return norms_[k]; }
    double beta(unsigned k) const { return betas_[k]; }
    double x(std::size_t point) const { return last_ == 0 ? 0 : (2 * static_cast<double>(point) - last_) / last_; }

  private:
    double last_;
    unsigned terms_;
    std::array<double, kMostDegree + 1> betas_{};
    std::array<double, kMostDegree + 1> norms_{};
};

class Polynomial {
  public:
    static constexpr const char* kWhere = "fit_poly";

    Polynomial(unsigned degree, unsigned segments) : degree_(degree), segments_(segments) {}

    std::uint64_t capacity(std::uint64_t count) const {
        const std::uint64_t most = std::min<std::uint64_t>(segments_ == 0 ? kMostOwnSegments : segments_, count);
        return kVarintBytes + most * (kVarintBytes + 4 * (degree_ + 1));
    }

    /// Writes pieces of a falling curve of heights from 1 to `lowest`.
    void encode(Span<const double> heights, double lowest, ByteWriter& writer) const;

    /// Takes pieces that make up `count` points.
    void check(ByteTaker& taker, std::uint64_t count) const;

    /// Calls use(start, heights) for all of `count` points, some at a time; for pieces that passed the check.
    template <typename Use>
    void decode(ByteTaker& taker, std::size_t count, double, Use use) const {
        std::uint64_t pieces = taker.take_varint();
        for (std::size_t start = 0; pieces-- > 0 && taker.ok();) {
            const auto points = std::min<std::size_t>(taker.take_varint() + 1, count - start);
            std::array<double, kMostDegree + 1> coefficients{};
            const Gram basis(points, terms_of(points));
            for (unsigned k = 0; k < basis.terms(); ++k) {
                coefficients[k] = static_cast<double>(taker.take_coefficient());
            }
            std::array<double, kChunk> heights;
            for (std::size_t done = 0; done < points; done += kChunk) {
                const Span<double> chunk{heights.data(), std::min(kChunk, points - done)};
                evaluate(basis, coefficients.data(), done, chunk);
                use(start + done, Span<const double>(chunk));
            }
            start += points;
        }
    }

  private:
    unsigned terms_of(std::uint64_t points) const {
        return static_cast<unsigned>(std::min<std::uint64_t>(degree_ + 1, points));
    }

    static void evaluate(const Gram& basis, const double* coefficients, std::size_t start, Span<double> heights);

    unsigned degree_;
    unsigned segments_;
};

}  // namespace deepreduce
