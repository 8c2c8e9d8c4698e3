// What our encoder of the matrix codec says of rows and columns: FORMAT.md, 4.10, "An encoder may choose".
#pragma once

#include "matrix_model.hpp"

namespace deepreduce::matrix {

/// Sides whose length they divide are tried in groups of so many lines: a filter's taps often go together.
inline constexpr std::uint64_t kGroups[] = {1, 4, 9, 16};

/// What is known of rows, or of columns, and what an encoder says of them.
struct Side {
    Span<const std::uint64_t> counts;
    Span<std::uint8_t> scratch;
    /// The whole side for no classes at all.
    std::uint64_t group = 0;
    bool context = false;
    Span<const std::uint8_t> classes;
    /// Lines of each class.
    std::uint64_t lines[kHighestClass + 1] = {};
    unsigned highest = 1;
};

/// Classes are steps of equal length in the square root of what was kept, of which a count has the same error
/// whatever it is. Steps of sqrt(3) cost as much by being coarse as finer ones would take to say.
class Steps {
  public:
    explicit Steps(std::uint64_t largest) {
        const std::uint64_t width = std::max<std::uint64_t>(3, 4 * largest / kLeastBeyond + 1);
        for (std::uint64_t step = 0; step < kHighestClass; ++step) {
            least_[step] = step == 0 ? 1 : (width * (2 * step + 1) * (2 * step + 1) + 3) / 4;
        }
    }

    std::uint8_t class_of(std::uint64_t count) const {
        unsigned line_class = 0;
        while (line_class < kHighestClass && count >= least_[line_class]) {
            ++line_class;
        }
        return static_cast<std::uint8_t>(line_class);
    }

  private:
    static constexpr std::uint64_t kLeastBeyond = (2 * kHighestClass + 1) * (2 * kHighestClass + 1);
    std::uint64_t least_[kHighestClass] = {};
};

inline std::uint64_t count_of(Span<const std::uint64_t> counts, std::uint64_t start, std::uint64_t group) {
    std::uint64_t sum = 0;
    for (std::uint64_t line = start; line < start + group; ++line) {
        sum += counts[line];
    }
    return sum;
}

/// Classes of groups of lines, written over those before; returns how many bits they save, less than 2**-16 of each.
inline std::int64_t classify(const Side& side, std::uint64_t group, std::int64_t cost[2]) {
    const std::uint64_t length = side.counts.size;
    std::uint64_t largest = 0;
    std::uint64_t kept = 0;
    for (std::uint64_t line = 0; line < length; line += group) {
        const std::uint64_t count = count_of(side.counts, line, group);
        largest = std::max(largest, count);
        kept += count;
    }
    const Steps steps(largest);
    ClassModel models[] = {ClassModel(false), ClassModel(true)};
    cost[0] = cost[1] = 0;
    std::int64_t saved = 0;
    std::uint64_t weights = 0;
    for (std::uint64_t place = 0; place < length / group; ++place) {
        const std::uint64_t count = count_of(side.counts, place * group, group);
        const std::uint8_t line_class = steps.class_of(count);
        side.scratch[place] = line_class;
        weights += group * weight_of(line_class);
        saved += static_cast<std::int64_t>(count) * 2 * kLogarithms[line_class];
        for (unsigned context = 0; context < 2; ++context) {
            unsigned left = line_class;
            models[context].walk([&](BitModel& model) {
                const unsigned bit = left == 0 ? 0 : 1;
                left -= bit;
                cost[context] += model.cost(bit);
                model.count(bit);
                return bit;
            });
        }
    }
    return saved - static_cast<std::int64_t>(kept) * (near_logarithm(weights) - near_logarithm(length));
}

/// Finds the grouping that saves most.
inline void choose(Side& side) {
    const std::uint64_t length = side.counts.size;
    side.lines[1] = side.group;
    std::int64_t most = 0;
    std::uint64_t best = 0;
    std::uint64_t last = 0;
    for (const std::uint64_t group : kGroups) {
        if (length % group != 0 || length / group < 2) {
            continue;
        }
        std::int64_t cost[2];
        const std::int64_t saved = classify(side, group, cost);
        last = group;
        for (unsigned context = 0; context < 2; ++context) {
            if (saved - cost[context] > most) {
                most = saved - cost[context];
                best = group;
                side.context = context != 0;
            }
        }
    }
    if (best == 0) {
        return;
    }
    if (best != last) {
        std::int64_t ignored[2];
        classify(side, best, ignored);
    }
    side.group = best;
    side.classes = side.scratch.part(0, length / best);
    side.lines[1] = 0;
    for (const unsigned line_class : side.classes) {
        side.lines[line_class] += best;
        side.highest = std::max(side.highest, line_class);
    }
}

/// How many a model expects to be kept, in 2**-16; scale times the weights must not be too steep.
inline std::uint64_t expected(const Side& rows, const Side& columns, std::uint64_t scale) {
    std::uint64_t sum = 0;
    for (unsigned r = 1; r <= rows.highest; ++r) {
        for (unsigned c = 1; rows.lines[r] != 0 && c <= columns.highest; ++c) {
            const std::uint64_t hazard = scale * weight_of(r) * weight_of(c) >> kFine;
            sum += rows.lines[r] * columns.lines[c] * ((kTotal - survival(hazard)) >> 16);
        }
    }
    return sum;
}

/// Finds the highest code that expects no more than were kept; false where there is none.
inline bool fit(const Side& rows, const Side& columns, std::uint64_t kept, unsigned& code) {
    const std::uint64_t most = kSteepest / (weight_of(rows.highest) * weight_of(columns.highest));
    const auto fits = [&](unsigned candidate) {
        const std::uint64_t scale = scale_of(candidate);
        return scale <= most && expected(rows, columns, scale) <= kept << 16;
    };
    if (!fits(0)) {
        return false;
    }
    code = 0;
    for (unsigned bit = 1u << 15; bit != 0; bit >>= 1) {
        if (fits(code | bit)) {
            code |= bit;
        }
    }
    return true;
}

}  // namespace deepreduce::matrix
