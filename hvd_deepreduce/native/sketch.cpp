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

/// How many of the quantiles go to the values that are not negative: their share, but one at least to each sign.
std::size_t positive_quantiles(std::size_t positive, std::size_t kept, std::size_t quantiles) {
    if (positive == 0 || positive == kept) {
        return positive == 0 ? 0 : quantiles;
    }
    const std::size_t share = (2 * quantiles * positive + kept) / (2 * kept);
    return std::min(std::max<std::size_t>(share, 1), quantiles - 1);
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

/// Cuts the values of one sign at their quantiles; equal values stay together.
template <typename V>
void cut(Span<const Ranked<V>> sorted, std::size_t quantiles, Buckets<V>& buckets, Span<std::uint8_t> numbers) {
    std::size_t start = 0;
    for (std::size_t quantile = 1; quantile <= quantiles; ++quantile) {
        std::size_t end = sorted.size * quantile / quantiles;
        if (end <= start) {
            continue;
        }
        while (end < sorted.size && sorted[end].key == sorted[end - 1].key) {
            ++end;
        }
        const auto bucket = sorted.part(start, end - start);
        buckets.means[buckets.count] = mean_of(bucket);
        buckets.weights[buckets.count] = bucket.size;
        for (const Ranked<V>& ranked : bucket) {
            numbers[ranked.place] = static_cast<std::uint8_t>(buckets.count);
        }
        ++buckets.count;
        start = end;
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
std::size_t sketch_encode(Span<const V> values, unsigned quantiles, Span<Ranked<V>> first, Span<Ranked<V>> second,
                          Span<std::uint8_t> numbers, Span<std::uint8_t> out) {
    if (values.size == 0) {
        return 0;
    }
    Buckets<V> buckets;
    if (are_finite(values)) {
        const auto sorted = sort_falling(values, first, second);
        const std::size_t positive = count_positive(sorted);
        const std::size_t share = positive_quantiles(positive, sorted.size, quantiles);
        cut(sorted.part(0, positive), share, buckets, numbers);
        cut(sorted.part(positive, sorted.size - positive), quantiles - share, buckets, numbers);
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

#define DEEPREDUCE_SKETCH(V)                                                                                          \
    template std::size_t sketch_encode(Span<const V>, unsigned, Span<Ranked<V>>, Span<Ranked<V>>, Span<std::uint8_t>, \
                                       Span<std::uint8_t>);                                                           \
    template Status sketch_check<V>(Bytes, std::uint64_t);                                                            \
    template Status sketch_decode(Bytes, Span<V>);

DEEPREDUCE_SKETCH(float)
DEEPREDUCE_SKETCH(double)

}  // namespace deepreduce
