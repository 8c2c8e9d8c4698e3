// How both ends of the matrix codec see rows and columns: FORMAT.md, 4.10.
#pragma once

#include <algorithm>

#include "matrix_coder.hpp"

namespace deepreduce::matrix {

/// First byte: a rice payload follows; or kModel plus kRowContext and kColumnContext as it may be; or kEven.
constexpr unsigned kPlain = 0;
constexpr unsigned kModel = 1;
constexpr unsigned kRowContext = 1;
constexpr unsigned kColumnContext = 2;
constexpr unsigned kEven = kModel + kRowContext + kColumnContext + 1;

constexpr unsigned kHighestClass = 50;

/// A cell that starts further off than this is reached in steps.
constexpr std::uint64_t kReach = 4 * kOctave;
constexpr std::uint64_t kSteepest = 6 * kOctave;

/// Rows that a support may have: what is spent on them stays in proportion to what was kept.
constexpr std::uint64_t most_rows(std::uint64_t kept) { return (1u << 16) + 64 * kept; }

/// The same for columns with weights, whose sums stay below 2**32.
constexpr std::uint64_t most_columns(std::uint64_t kept) { return std::min<std::uint64_t>(most_rows(kept), 1u << 20); }

/// Elements of each kind of scratch space.
struct Room {
    std::uint64_t row_classes = 0;
    std::uint64_t column_classes = 0;
    std::uint64_t counts = 0;
    std::uint64_t sums = 0;
    std::uint64_t starts = 0;
};

struct Scratch {
    Span<std::uint8_t> row_classes;
    Span<std::uint8_t> column_classes;
    Span<std::uint64_t> counts;
    Span<std::uint32_t> sums;
    Span<std::uint32_t> starts;
};

/// Cells to look from, for each place in `sums`: two to a column keep the walks short.
constexpr std::uint64_t starts_room(std::uint64_t columns) { return 2 * columns + 2; }

/// kappa: the hazard of a cell of row class 1 and column class 1, in fine parts of an octave.
constexpr std::uint64_t scale_of(unsigned code) { return std::uint64_t{2048 + (code & 2047)} << ((code >> 11) + 5); }

constexpr std::uint64_t weight_of(unsigned line_class) { return std::uint64_t{line_class} * line_class; }

/// A distance in hazard; beyond the reach it only needs to stay there.
inline std::uint64_t times(std::uint64_t rate, std::uint64_t distance) {
    const Wide product = Wide{rate} * distance;
    constexpr unsigned kMost = 62;
    return product >> kMost != 0 ? std::uint64_t{1} << kMost : static_cast<std::uint64_t>(product);
}

/// How often a bit was zero and one; the bit that is not there yet counts half of each.
struct BitModel {
    std::uint16_t seen[2] = {0, 0};

    std::uint64_t share_of_one() const { return ((2u * seen[1] + 1) * kTotal) / (2u * (seen[0] + seen[1] + 1u)); }

    /// In 2**-16 of a bit.
    std::int64_t cost(unsigned bit) const {
        return std::int64_t{kLogarithms[2u * (seen[0] + seen[1] + 1u)]} - kLogarithms[2u * seen[bit] + 1u];
    }

    void count(unsigned bit) {
        ++seen[bit];
        if (seen[0] + seen[1] == 255) {
            seen[0] >>= 1;
            seen[1] >>= 1;
        }
    }
};

/// Classes in unary, each bit with a model by its place and, with a context, by the class before.
class ClassModel {
  public:
    explicit ClassModel(bool context) : context_(context) {}

    /// Calls `bit(model)` for each bit in turn, which counts it, until it returns 0; returns the class.
    template <typename Bit>
    unsigned walk(Bit bit) {
        BitModel* models = models_[context_ ? std::min(before_, 7u) : 0];
        unsigned line_class = 0;
        while (line_class < kHighestClass && bit(models[std::min(line_class, 15u)]) != 0) {
            ++line_class;
        }
        before_ = line_class;
        return line_class;
    }

  private:
    BitModel models_[8][16];
    bool context_;
    unsigned before_ = 0;
};

/// All columns alike: a column's place in hazard is its number.
struct UniformColumns {
    std::uint64_t count;

    std::uint64_t end() const { return count; }
    std::uint64_t at(std::uint64_t column) const { return column; }
    std::uint64_t find(std::uint64_t place) const { return place; }
};

/// `sums` are the weights of all columns before each one; those of class 0 have no extent.
class WeightedColumns {
  public:
    WeightedColumns(Span<const std::uint8_t> classes, std::uint64_t group, std::uint64_t count, const Scratch& scratch)
        : sums_(scratch.sums), starts_(scratch.starts) {
        std::uint32_t sum = 0;
        std::uint64_t column = 0;
        for (const unsigned line_class : classes) {
            for (const std::uint64_t last = std::min(count, column + group); column < last; ++column) {
                scratch.sums[column] = sum;
                sum += static_cast<std::uint32_t>(weight_of(line_class));
            }
        }
        scratch.sums[count] = sum;
        while (sum >> shift_ > 2 * count) {
            ++shift_;
        }
        std::uint64_t start = 0;
        for (std::uint64_t bucket = 0; bucket << shift_ < end(); ++bucket) {
            while (sums_[start + 1] <= bucket << shift_) {
                ++start;
            }
            scratch.starts[bucket] = static_cast<std::uint32_t>(start);
        }
    }

    std::uint64_t end() const { return sums_[sums_.size - 1]; }
    std::uint64_t at(std::uint64_t column) const { return sums_[column]; }

    /// The column around a place below the end.
    std::uint64_t find(std::uint64_t place) const {
        std::uint64_t column = starts_[place >> shift_];
        // A third of the places lie one further on, which no processor foresees.
        column += sums_[column + 1] <= place ? 1 : 0;
        while (sums_[column + 1] <= place) {
            ++column;
        }
        return column;
    }

  private:
    Span<const std::uint32_t> sums_;
    Span<const std::uint32_t> starts_;
    unsigned shift_ = 0;
};

/// How steep each row is: kappa times its weight.
struct Rows {
    Span<const std::uint8_t> classes;
    std::uint64_t group;
    std::uint64_t count;
    std::uint64_t scale;

    std::uint64_t rate(std::uint64_t row) const {
        if (group == count) {
            return scale;
        }
        return scale * weight_of(classes[group == 1 ? row : row / group]);
    }
};

/// Where both ends stand: at the place `at` of a row, `passed` of hazard after the last symbol.
struct Place {
    std::uint64_t row = 0;
    std::uint64_t rate = 0;
    std::uint64_t at = 0;
    std::uint64_t passed = 0;

    /// Goes to the start of the next row; false where there is none.
    bool next_row(const Rows& rows, std::uint64_t passed_now) {
        passed = passed_now;
        at = 0;
        if (++row == rows.count) {
            return false;
        }
        rate = rows.rate(row);
        return true;
    }

    template <typename Columns>
    std::uint64_t hazard_to(const Columns& columns, std::uint64_t column) const {
        return passed + times(rate, columns.at(column) - at);
    }

    /// The first column that starts out of reach, in a row that ends out of reach; it may be the one after the last.
    template <typename Columns>
    std::uint64_t out_of_reach(const Columns& columns) const {
        const std::uint64_t needed = (kReach - passed + rate - 1) / rate;
        return columns.find(at + needed - 1) + 1;
    }

    template <typename Columns>
    void go_to(const Columns& columns, std::uint64_t column) {
        at = columns.at(column);
        passed = 0;
    }
};

}  // namespace deepreduce::matrix
