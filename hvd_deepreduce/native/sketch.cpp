#include "sketch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "huffman_code.hpp"

namespace deepreduce {
namespace {

using namespace huffman;

constexpr const char* kWhere = "sketch";
constexpr unsigned kLengthBits = 4;

/// The sorted values of one sign, and how much they count: each as one, or as its square in units of the largest.
template <typename V>
class Side {
  public:
    Side(Span<const Ranked<V>> sorted, bool squares) : sorted_(sorted), squares_(squares) {
        if (sorted.size != 0) {
            largest_ = std::max(std::abs(number(sorted[0])), std::abs(number(sorted[sorted.size - 1])));
        }
        for (const Ranked<V>& ranked : sorted) {
            total_ += weight(ranked);
        }
    }

    Span<const Ranked<V>> sorted() const { return sorted_; }
    double largest() const { return largest_; }
    double total() const { return total_; }

    double weight(const Ranked<V>& ranked) const {
        if (!squares_) {
            return 1;
        }
        const double height = largest_ == 0 ? 0 : number(ranked) / largest_;
        return height * height;
    }

  private:
    static double number(const Ranked<V>& ranked) { return static_cast<double>(value_of_key<V>(ranked.key)); }

    Span<const Ranked<V>> sorted_;
    bool squares_;
    double largest_ = 0;
    double total_ = 0;
};

/// How many of the quantiles go to the values that are not negative: their share, but one at least to each sign.
template <typename V>
unsigned positive_quantiles(const Side<V>& positive, const Side<V>& negative, unsigned quantiles, bool squares) {
    if (positive.sorted().size == 0 || negative.sorted().size == 0) {
        return positive.sorted().size == 0 ? 0 : quantiles;
    }
    double above = positive.total();
    double below = negative.total();
    if (squares) {
        // Both in units of the larger one.
        const double longer = std::max(positive.largest(), negative.largest());
        above *= (positive.largest() / longer) * (positive.largest() / longer);
        below *= (negative.largest() / longer) * (negative.largest() / longer);
    }
    const double share = std::floor(quantiles * (above / (above + below)) + 0.5);
    return static_cast<unsigned>(std::min(std::max(share, 1.0), quantiles - 1.0));
}

template <typename V>
V mean_of(Span<const Ranked<V>> bucket) {
    // Differences of one sign, from a first value: sums that can't overflow before the values themselves would.
    const double first = static_cast<double>(value_of_key<V>(bucket[0].key));
    const double last = static_cast<double>(value_of_key<V>(bucket[bucket.size - 1].key));
    const double count = static_cast<double>(bucket.size);
    double sum = 0;
    for (const Ranked<V>& ranked : bucket) {
        sum += (static_cast<double>(value_of_key<V>(ranked.key)) - first) / count;
    }
    return static_cast<V>(std::max(std::min(first + sum, first), last));
}

/// What a payload is made of: the mean of each bucket, and how many values it has.
template <typename V>
struct Buckets {
    unsigned count = 0;
    std::array<V, kMostQuantiles> means;
    Weights weights{};
};

/// Cuts the values of one sign where a quantile is full: each is in that which holds the middle of what it counts, and
/// equal ones are together where the first is.
template <typename V>
void cut(const Side<V>& side, unsigned quantiles, Buckets<V>& buckets, Span<std::uint8_t> numbers) {
    const auto sorted = side.sorted();
    std::size_t start = 0;
    double before = 0;
    double current = 0;
    const auto close = [&](std::size_t end) {
        const auto bucket = sorted.part(start, end - start);
        buckets.means[buckets.count] = mean_of(bucket);
        buckets.weights[buckets.count] = bucket.size;
        for (const Ranked<V>& ranked : bucket) {
            numbers[ranked.place] = static_cast<std::uint8_t>(buckets.count);
        }
        ++buckets.count;
        start = end;
    };
    for (std::size_t i = 0; i < sorted.size; ++i) {
        const double weight = side.weight(sorted[i]);
        if (i == 0 || sorted[i].key != sorted[i - 1].key) {
            const double middle = side.total() == 0 ? 0 : (before + weight / 2) / side.total();
            const double quantile = std::min(std::floor(quantiles * middle), quantiles - 1.0);
            if (i != 0 && quantile != current) {
                close(i);
            }
            current = quantile;
        }
        before += weight;
    }
    if (sorted.size != 0) {
        close(sorted.size);
    }
}

}  // namespace

std::uint64_t sketch_capacity(std::uint64_t kept, unsigned quantiles, std::size_t itemsize) {
    const std::uint64_t buckets = std::min<std::uint64_t>(kept, quantiles);
    // No word is longer than 15 bits, and none than there are other buckets.
    const std::uint64_t longest = buckets < 2 ? 0 : std::min<std::uint64_t>(buckets - 1, kLongest);
    return kept == 0 ? 0 : 1 + buckets * itemsize + (buckets * kLengthBits + kept * longest + 7) / 8;
}

template <typename V>
std::size_t sketch_encode(Span<const V> values, unsigned quantiles, bool squares, Span<Ranked<V>> first,
                          Span<Ranked<V>> second, Span<std::uint8_t> numbers, Span<std::uint8_t> out) {
    if (values.size == 0) {
        return 0;
    }
    Buckets<V> buckets;
    if (are_finite(values)) {
        const auto sorted = sort_falling(values, first, second);
        const std::size_t count = count_positive(sorted);
        const Side<V> positive(sorted.part(0, count), squares);
        const Side<V> negative(sorted.part(count, sorted.size - count), squares);
        const unsigned share = positive_quantiles(positive, negative, quantiles, squares);
        cut(positive, share, buckets, numbers);
        cut(negative, quantiles - share, buckets, numbers);
    } else {
        buckets.count = 1;
        buckets.means[0] = std::numeric_limits<V>::quiet_NaN();
    }
    out[0] = static_cast<std::uint8_t>(buckets.count - 1);
    const std::size_t head = 1 + buckets.count * sizeof(V);
    std::memcpy(out.data + 1, buckets.means.data(), head - 1);
    if (buckets.count == 1) {
        return head;
    }
    const Lengths lengths = lengths_of(buckets.weights);
    const auto words = words_of(lengths);
    BitWriter writer(out.part(head, out.size - head));
    for (unsigned bucket = 0; bucket < buckets.count; ++bucket) {
        writer.put(lengths[bucket], kLengthBits);
    }
    for (std::size_t i = 0; i < values.size; ++i) {
        writer.put(words[numbers[i]], lengths[numbers[i]]);
    }
    return head + static_cast<std::size_t>((writer.finish() + 7) / 8);
}

template <typename V>
Status sketch_check(Bytes payload, std::uint64_t kept) {
    if (kept == 0) {
        return check_length(kWhere, payload, 0);
    }
    if (payload.size == 0) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes; more are needed", 0);
    }
    const std::uint64_t buckets = payload[0] + std::uint64_t{1};
    const std::uint64_t head = 1 + buckets * sizeof(V);
    if (buckets == 1) {
        return check_length(kWhere, payload, head);
    }
    if (buckets > kept) {
        return failure(Fault::corrupt, kWhere, "{} buckets of {} values", buckets, kept);
    }
    const std::uint64_t least = head + (buckets * kLengthBits + kept + 7) / 8;
    if (payload.size < least) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes; {} values take {} at least", payload.size, kept,
                       least);
    }
    return {};
}

template <typename V>
Status sketch_decode(Bytes payload, Span<V> values) {
    const Status status = sketch_check<V>(payload, values.size);
    if (!status.ok() || values.size == 0) {
        return status;
    }
    const unsigned buckets = payload[0] + 1u;
    const std::size_t head = 1 + buckets * sizeof(V);
    std::array<V, kMostQuantiles> means{};
    for (unsigned bucket = 0; bucket < buckets; ++bucket) {
        const V mean = load<V>(payload.data + 1 + bucket * sizeof(V));
        means[bucket] = std::isnan(mean) ? std::numeric_limits<V>::quiet_NaN() : mean;
    }
    if (buckets == 1) {
        std::fill(values.begin(), values.end(), means[0]);
        return {};
    }
    const Bytes stream = payload.part(head, payload.size - head);
    BitReader reader(stream);
    Lengths lengths{};
    for (unsigned bucket = 0; bucket < buckets; ++bucket) {
        lengths[bucket] = static_cast<std::uint8_t>(reader.take(kLengthBits));
    }
    if (!is_code(lengths)) {
        return failure(Fault::corrupt, kWhere, "the lengths of {} buckets are those of no code", buckets);
    }
    const Table table(lengths);
    for (std::size_t i = 0; i < values.size; ++i) {
        const Table::Entry entry = table[reader.peek()];
        reader.skip(entry.length);
        if (reader.overrun()) {
            return failure(Fault::truncated, kWhere, "payload of {} bytes ends within value {} of {}", payload.size, i,
                           values.size);
        }
        if (entry.length == 0) {
            return failure(Fault::corrupt, kWhere, "value {} has a word that is none", i);
        }
        values[i] = means[entry.symbol];
    }
    return finish(kWhere, stream, reader);
}

#define DEEPREDUCE_SKETCH(V)                                                                            \
    template std::size_t sketch_encode(Span<const V>, unsigned, bool, Span<Ranked<V>>, Span<Ranked<V>>, \
                                       Span<std::uint8_t>, Span<std::uint8_t>);                         \
    template Status sketch_check<V>(Bytes, std::uint64_t);                                              \
    template Status sketch_decode(Bytes, Span<V>);

DEEPREDUCE_SKETCH(float)
DEEPREDUCE_SKETCH(double)

}  // namespace deepreduce
