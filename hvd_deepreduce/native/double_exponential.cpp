#include "double_exponential.hpp"

#include "least_squares.hpp"

namespace deepreduce {
namespace {

/// Our own curves fall, or bend a little upwards: their squares stay far from overflow.
constexpr double kMostOwnRate = 100;
/// The hyperbolic tangent of half a rate's step, at most: a fall to a 20 000th from one point to the next.
constexpr double kSteepest = 0.9999;
constexpr int kNewtonSteps = 16;

/// Calls use(x, height, integral, integral of the integral) for every point, both by trapezoids.
template <typename Use>
void integrate(Span<const double> heights, Use use) {
    const double last = static_cast<double>(heights.size - 1);
    double integral = 0;
    double twice = 0;
    for (std::size_t i = 0; i < heights.size; ++i) {
        if (i != 0) {
            const double before = integral;
            integral += (heights[i - 1] + heights[i]) / (2 * last);
            twice += (before + integral) / (2 * last);
        }
        use(static_cast<double>(i) / last, heights[i], integral, twice);
    }
}

/// The rate whose exponential integrates by trapezoids as one of `rate` does by the book. With u = rate * step / 2 its
/// ratio from point to point is (1 + u) / (1 - u); the logarithm of that is found by Newton's method.
float rate_of(double rate, std::size_t points) {
    const double last = static_cast<double>(points - 1);
    const double half = std::min(std::abs(rate) / (2 * last), kSteepest);
    const double ratio = (1 - half) / (1 + half);
    double logarithm = -2 * half;
    for (int step = 0; step < kNewtonSteps; ++step) {
        logarithm = (logarithm - 1) + ratio * portable_exp(-logarithm);
    }
    const double size = std::min(-logarithm * last, kMostRate);
    return static_cast<float>(rate < 0 ? -size : std::min(size, kMostOwnRate));
}

/// Factors for rates that are known: linear least squares.
template <std::size_t N>
bool find_factors(Span<const double> heights, Exponentials& curve) {
    LeastSquares<N> squares;
    const double last = static_cast<double>(heights.size - 1);
    std::array<std::array<double, kExponentialChunk>, N> powers;
    for (std::size_t start = 0; start < heights.size; start += kExponentialChunk) {
        const std::size_t size = std::min(kExponentialChunk, heights.size - start);
        for (std::size_t term = 0; term < N; ++term) {
            const double rate = static_cast<double>(curve.rates[term]);
            for (std::size_t i = 0; i < size; ++i) {
                powers[term][i] = portable_exp(rate * (static_cast<double>(start + i) / last));
            }
        }
        for (std::size_t i = 0; i < size; ++i) {
            Vector<N> functions;
            for (std::size_t term = 0; term < N; ++term) {
                functions[term] = powers[term][i];
            }
            squares.add(functions, heights[start + i]);
        }
    }
    Vector<N> factors;
    if (!squares.solve(factors)) {
        return false;
    }
    for (std::size_t term = 0; term < N; ++term) {
        curve.factors[term] = static_cast<float>(factors[term]);
        if (!std::isfinite(curve.factors[term])) {
            return false;
        }
    }
    curve.terms = N;
    return true;
}

/// y = a e^(bx) solves y = b * integral + a.
bool fit_one(Span<const double> heights, Exponentials& curve) {
    LeastSquares<2> squares;
    integrate(heights, [&](double, double height, double integral, double) { squares.add({integral, 1}, height); });
    Vector<2> found;
    if (!squares.solve(found)) {
        return false;
    }
    curve.rates[0] = rate_of(found[0], heights.size);
    return find_factors<1>(heights, curve);
}

/// y = a e^(bx) + c e^(dx) solves y = -b d * twice + (b + d) * integral + (a + c - ...) x + (a + c): DeepReduce,
/// appendix E.
bool fit_two(Span<const double> heights, Exponentials& curve) {
    LeastSquares<4> squares;
    integrate(heights, [&](double x, double height, double integral, double twice) {
        squares.add({twice, integral, x, 1}, height);
    });
    Vector<4> found;
    if (!squares.solve(found)) {
        return false;
    }
    const double square = found[1] * found[1] + 4 * found[0];
    if (square < 0) {  // an oscillation, which no sorted curve has
        return false;
    }
    const double root = std::sqrt(square);
    curve.rates = {rate_of((found[1] - root) / 2, heights.size), rate_of((found[1] + root) / 2, heights.size)};
    return curve.rates[0] < curve.rates[1] && find_factors<2>(heights, curve);
}

/// Rates far apart, steepest first, and what is needed of their exponentials to fit a curve with any two.
class RateGrid {
  public:
    /// Takes all of the first points, and then fewer and fewer: a falling curve is steep where it begins.
    explicit RateGrid(Span<const double> heights) {
        rates_[0] = -kMostRate;
        for (std::size_t k = 1; k < kRates; ++k) {
            rates_[k] = rates_[k - 1] * kBetweenRates;
        }
        const double last = static_cast<double>(heights.size - 1);
        for (std::size_t start = 0; start < heights.size;) {
            const std::size_t end = std::min(heights.size, start + 1 + start / kAllBelow);
            const std::size_t middle = start + (end - start - 1) / 2;
            add(static_cast<double>(end - start), static_cast<double>(middle) / last, heights[middle]);
            start = end;
        }
    }

    /// The pair that explains most. False where none does anything.
    bool best_pair(std::array<float, 2>& rates) const {
        double most = 0;
        for (std::size_t i = 0; i < kRates; ++i) {
            for (std::size_t j = i + 1; j < kRates; ++j) {
                const double both = products_[i][i] * products_[j][j];
                const double determinant = both - products_[j][i] * products_[j][i];
                const double first = right_[i] * products_[j][j] - right_[j] * products_[j][i];
                const double second = right_[j] * products_[i][i] - right_[i] * products_[j][i];
                const double explained = (first * right_[i] + second * right_[j]) / determinant;
                if (determinant > kDependent * both && explained > most) {
                    most = explained;
                    rates = {static_cast<float>(rates_[i]), static_cast<float>(rates_[j])};
                }
            }
        }
        return most > 0;
    }

  private:
    static constexpr std::size_t kRates = 17;
    static constexpr double kBetweenRates = 0.625;
    static constexpr std::size_t kAllBelow = 64;
    static constexpr double kDependent = 1e-9;

    void add(double weight, double x, double height) {
        Vector<kRates> powers;
        for (std::size_t i = 0; i < kRates; ++i) {
            powers[i] = portable_exp(rates_[i] * x);
        }
        for (std::size_t i = 0; i < kRates; ++i) {
            const double weighted = weight * powers[i];
            for (std::size_t j = 0; j <= i; ++j) {
                products_[i][j] += weighted * powers[j];
            }
            right_[i] += weighted * height;
        }
    }

    Vector<kRates> rates_;
    std::array<Vector<kRates>, kRates> products_{};
    Vector<kRates> right_{};
};

/// The integral equations weigh a short steep beginning next to nothing, where the largest values are: rates of a grid
/// may do better.
bool fit_grid(Span<const double> heights, Exponentials& curve) {
    return RateGrid(heights).best_pair(curve.rates) && find_factors<2>(heights, curve);
}

double squared_error(Span<const double> heights, double lowest, const Exponentials& curve) {
    std::array<double, kExponentialChunk> found;
    double sum = 0;
    for (std::size_t start = 0; start < heights.size; start += kExponentialChunk) {
        const Span<double> chunk{found.data(), std::min(kExponentialChunk, heights.size - start)};
        evaluate(curve, lowest, heights.size, start, chunk);
        for (std::size_t i = 0; i < chunk.size; ++i) {
            const double error = std::max(std::min(chunk[i], 1.0), lowest) - heights[start + i];
            sum += error * error;
        }
    }
    return sum;
}

}  // namespace

void evaluate(const Exponentials& curve, double lowest, std::size_t count, std::size_t start, Span<double> heights) {
    const double last = static_cast<double>(count - 1);
    const double fall = lowest - 1;
    for (std::size_t i = 0; i < heights.size; ++i) {
        heights[i] = curve.terms == 0 ? 1 + fall * (static_cast<double>(start + i) / last) : 0;
    }
    for (std::size_t term = 0; term < curve.terms; ++term) {
        const double factor = static_cast<double>(curve.factors[term]);
        const double rate = static_cast<double>(curve.rates[term]);
        for (std::size_t i = 0; i < heights.size; ++i) {
            heights[i] += factor * portable_exp(rate * (static_cast<double>(start + i) / last));
        }
    }
}

void DoubleExponential::encode(Span<const double> heights, double lowest, ByteWriter& writer) const {
    Exponentials best;
    double least = squared_error(heights, lowest, best);
    for (const auto fit : {fit_one, fit_two, fit_grid}) {
        Exponentials curve;
        if (least == 0 || !fit(heights, curve)) {
            continue;
        }
        const double error = squared_error(heights, lowest, curve);
        if (error < least) {
            least = error;
            best = curve;
        }
    }
    writer.put(best.terms);
    for (std::size_t term = 0; term < best.terms; ++term) {
        writer.put(best.factors[term]);
        writer.put(best.rates[term]);
    }
}

Exponentials DoubleExponential::take(ByteTaker& taker) {
    Exponentials curve;
    const auto terms = taker.take<std::uint8_t>();
    if (terms > curve.rates.size()) {
        taker.corrupt("{} exponentials; at most {} are allowed", terms, curve.rates.size());
    }
    for (std::size_t term = 0; term < terms && taker.ok(); ++term) {
        curve.factors[term] = taker.take_coefficient();
        curve.rates[term] = taker.take_coefficient();
        if (taker.ok() && std::abs(static_cast<double>(curve.rates[term])) > kMostRate) {
            taker.corrupt("the rate of exponential {} is beyond {}", term, static_cast<std::uint64_t>(kMostRate));
        }
        curve.terms = static_cast<std::uint8_t>(term + 1);
    }
    return curve;
}

}  // namespace deepreduce
