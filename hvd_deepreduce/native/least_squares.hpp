// Least squares of a few functions: FORMAT.md, 5.12.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace deepreduce {

/// Below this share of what it started from, a pivot is taken for zero.
constexpr double kSingular = 1e-13;

template <std::size_t N>
using Vector = std::array<double, N>;

/// Sums of the products of N functions with one another and with the heights: least squares of these by those.
template <std::size_t N>
class LeastSquares {
  public:
    void add(const Vector<N>& functions, double height) {
        for (std::size_t i = 0; i < N; ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                products_[i][j] += functions[i] * functions[j];
            }
            right_[i] += functions[i] * height;
        }
    }

    /// By Cholesky's decomposition of the products, brought to a diagonal of ones first. False where functions are
    /// near enough to dependent, or sums overflowed.
    bool solve(Vector<N>& factors) {
        Vector<N> scale;
        for (std::size_t i = 0; i < N; ++i) {
            scale[i] = std::sqrt(products_[i][i]);
            if (!(scale[i] > 0)) {
                return false;
            }
        }
        Vector<N> half;
        for (std::size_t i = 0; i < N; ++i) {
            half[i] = right_[i] / scale[i];
            for (std::size_t j = 0; j <= i; ++j) {
                double sum = products_[i][j] / (scale[i] * scale[j]);
                for (std::size_t k = 0; k < j; ++k) {
                    sum -= products_[i][k] * products_[j][k];
                }
                if (i != j) {
                    products_[i][j] = sum / products_[j][j];
                } else if (sum > kSingular) {
                    products_[i][i] = std::sqrt(sum);
                } else {
                    return false;
                }
            }
            for (std::size_t k = 0; k < i; ++k) {
                half[i] -= products_[i][k] * half[k];
            }
            half[i] /= products_[i][i];
        }
        for (std::size_t i = N; i-- > 0;) {
            factors[i] = half[i];
            for (std::size_t k = i + 1; k < N; ++k) {
                factors[i] -= products_[k][i] * factors[k];
            }
            factors[i] /= products_[i][i];
        }
        for (std::size_t i = 0; i < N; ++i) {
            factors[i] /= scale[i];
        }
        return true;
    }

  private:
    std::array<Vector<N>, N> products_{};
    Vector<N> right_{};
};

}  // namespace deepreduce
