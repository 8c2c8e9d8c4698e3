#include "polynomial.hpp"

namespace deepreduce {
namespace {

/// Points from `start` on, and the one of them farthest from the straight line between the first and the last.
struct Piece {
    std::size_t start;
    std::size_t points;
    std::size_t farthest;
    double distance;
};

Piece measured(Span<const double> heights, std::size_t start, std::size_t points) {
    Piece piece{start, points, start, 0};
    if (points < 3) {
        return piece;
    }
    const double first = heights[start];
    const double slope = (heights[start + points - 1] - first) / static_cast<double>(points - 1);
    for (std::size_t i = 1; i < points - 1; ++i) {
        const double distance = std::abs(heights[start + i] - (first + slope * static_cast<double>(i)));
        if (distance > piece.distance) {
            piece.farthest = start + i;
            piece.distance = distance;
        }
    }
    return piece;
}

/// DeepReduce, appendix C: the error of p straight pieces is at most 2M/p**2 for a curve whose slope changes by M, so
/// that 2*sqrt(M) pieces keep it below a half. Here both axes run from 0 to 1. No more than a bit a value is spent.
unsigned own_segments(Span<const double> heights, unsigned terms) {
    const std::size_t last = heights.size - 1;
    const double bend = std::abs((heights[0] - heights[1]) - (heights[last - 1] - heights[last]));
    const double pieces = std::ceil(2 * std::sqrt(bend * static_cast<double>(last)));
    const std::size_t most = std::min<std::size_t>(kMostOwnSegments, heights.size / (32 * terms));
    return static_cast<unsigned>(std::max(std::min(pieces, static_cast<double>(most)), 1.0));
}

/// Cuts pieces until there are so many, or none has more than `terms` points and a bend.
std::size_t cut(Span<const double> heights, std::size_t segments, unsigned terms, Span<Piece> pieces) {
    std::size_t count = 1;
    pieces[0] = measured(heights, 0, heights.size);
    while (count < segments) {
        Piece* most = nullptr;
        for (Piece& piece : pieces.part(0, count)) {
            if (piece.points > terms && piece.distance > (most == nullptr ? 0 : most->distance)) {
                most = &piece;
            }
        }
        if (most == nullptr) {
            break;
        }
        const std::size_t end = most->start + most->points;
        const std::size_t middle = most->farthest;
        std::copy_backward(most + 1, pieces.data + count, pieces.data + count + 1);
        most[1] = measured(heights, middle, end - middle);
        most[0] = measured(heights, most->start, middle - most->start);
        ++count;
    }
    return count;
}

}  // namespace

void Polynomial::encode(Span<const double> heights, double, ByteWriter& writer) const {
    const unsigned segments = segments_ == 0 ? own_segments(heights, degree_ + 1) : segments_;
    std::array<Piece, kMostSegments> pieces;
    const std::size_t count = cut(heights, segments, degree_ + 1, {pieces.data(), pieces.size()});
    writer.put_varint(count);
    for (const Piece& piece : Span<Piece>{pieces.data(), count}) {
        writer.put_varint(piece.points - 1);
        const Gram basis(piece.points, terms_of(piece.points));
        std::array<double, kMostDegree + 1> products{};
        for (std::size_t i = 0; i < piece.points; ++i) {
            const double x = basis.x(i);
            const double height = heights[piece.start + i];
            double before = 0;
            double here = 1;
            for (unsigned k = 0; k < basis.terms(); ++k) {
                products[k] += height * here;
                const double next = x * here - basis.beta(k) * before;
                before = here;
                here = next;
            }
        }
        for (unsigned k = 0; k < basis.terms(); ++k) {
            writer.put(static_cast<float>(products[k] / basis.norm(k)));
        }
    }
}

void Polynomial::check(ByteTaker& taker, std::uint64_t count) const {
    const std::uint64_t pieces = taker.take_varint();
    if (taker.ok() && (pieces == 0 || pieces > count)) {
        taker.corrupt("{} pieces of {} values", pieces, count);
    }
    std::uint64_t left = count;
    for (std::uint64_t i = 0; i < pieces && taker.ok(); ++i) {
        const std::uint64_t points = taker.take_varint() + 1;
        if (taker.ok() && (points > left || (i + 1 == pieces) != (points == left))) {
            taker.corrupt("a piece of {} values where {} are left", points, left);
            return;
        }
        left -= points;
        for (unsigned k = 0; k < terms_of(points) && taker.ok(); ++k) {
            taker.take_coefficient();
        }
    }
}

void Polynomial::evaluate(const Gram& basis, const double* coefficients, std::size_t start, Span<double> heights) {
    std::array<double, kChunk> x;
    std::array<double, kChunk> before;
    std::array<double, kChunk> here;
    for (std::size_t i = 0; i < heights.size; ++i) {
        x[i] = basis.x(start + i);
        before[i] = 0;
        here[i] = 1;
        heights[i] = coefficients[0];
    }
    for (unsigned k = 1; k < basis.terms(); ++k) {
        for (std::size_t i = 0; i < heights.size; ++i) {
            const double next = x[i] * here[i] - basis.beta(k - 1) * before[i];
            before[i] = here[i];
            here[i] = next;
            heights[i] += coefficients[k] * next;
        }
    }
}

}  // namespace deepreduce
