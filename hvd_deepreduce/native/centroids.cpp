#include "centroids.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bitstream.hpp"

namespace deepreduce {
namespace {

const char* name_of(CentroidSettings settings) { return settings.classes == 1 ? "onebit" : "twobit"; }

std::size_t group_of(Groups groups, std::size_t i) { return groups.of.size == 0 ? 0 : groups.of[i]; }

template <typename V>
void add(typename Tally<V>::Class& members, V value) {
    const Bits<V> size = magnitude(value);
    members.sum += static_cast<double>(std::abs(value));
    members.count += 1;
    if (size != 0) {
        members.least = std::min(members.least, size);
    }
}

template <typename V>
bool is_upper(const Tally<V>& tally, V value) {
    return static_cast<double>(std::abs(value)) > tally.threshold;
}

template <typename V>
V centroid_of(const Tally<V>& tally, std::size_t index, bool mean) {
    if (tally.largest >= FloatBits<V>::kInfinity) {
        return std::numeric_limits<V>::quiet_NaN();
    }
    // Of two classes one may have no members: its centroid is that of the other, so that it can't lead astray.
    const auto& members = tally.classes[tally.classes[index].count == 0 ? 1 - index : index];
    if (tally.largest == 0 || members.count == 0) {
        return 0;
    }
    if (mean) {
        // A sum of binary64 values may overflow though its terms do not.
        const double average = members.sum / static_cast<double>(members.count);
        return static_cast<V>(std::min(average, static_cast<double>(std::numeric_limits<V>::max())));
    }
    return members.least == FloatBits<V>::kInfinity ? V{0} : from_magnitude<V>(members.least);
}

/// One class of all values, and for `twobit` a second pass for two.
template <typename V>
void count(Span<const V> values, Groups groups, CentroidSettings settings, Span<Tally<V>> tallies) {
    const typename Tally<V>::Class none{0, 0, FloatBits<V>::kInfinity};
    std::fill(tallies.begin(), tallies.end(), Tally<V>{{none, none}, 0, 0});
    for (std::size_t i = 0; i < values.size; ++i) {
        Tally<V>& tally = tallies[group_of(groups, i)];
        add(tally.classes[0], values[i]);
        tally.largest = std::max(tally.largest, magnitude(values[i]));
    }
    if (settings.classes == 1) {
        return;
    }
    for (Tally<V>& tally : tallies) {
        tally.threshold = tally.classes[0].sum / static_cast<double>(tally.classes[0].count);
        tally.classes[0] = none;
    }
    for (const V& value : values) {
        Tally<V>& tally = tallies[group_of(groups, static_cast<std::size_t>(&value - values.data))];
        add(tally.classes[is_upper(tally, value) ? 1 : 0], value);
    }
}

}  // namespace

template <typename P>
std::size_t group_columns(Span<const P> positions, Span<std::uint32_t> ranks, Span<std::uint32_t> groups) {
    std::fill(ranks.begin(), ranks.end(), 0u);
    const std::uint64_t columns = ranks.size;
    std::uint64_t row = 0;
    for (std::size_t i = 0; i < positions.size; ++i) {
        const std::uint64_t position = positions[i];
        // Positions are sorted, so a division is needed where a row begins only.
        if (position < row || position - row >= columns) {
            row = position - position % columns;
        }
        groups[i] = static_cast<std::uint32_t>(position - row);
        ranks[groups[i]] = 1;
    }
    std::uint32_t next = 0;
    for (std::uint32_t& rank : ranks) {
        const std::uint32_t found = rank;
        rank = next;
        next += found;
    }
    for (std::uint32_t& group : groups) {
        group = ranks[group];
    }
    return next;
}

std::uint64_t centroids_size(std::uint64_t kept, std::uint64_t groups, std::size_t itemsize,
                             CentroidSettings settings) {
    return groups * settings.classes * itemsize + (kept * settings.classes + 7) / 8;
}

template <typename V>
void centroids_encode(Span<const V> values, Groups groups, CentroidSettings settings, Span<Tally<V>> tallies,
                      Span<std::uint8_t> out) {
    count(values, groups, settings, tallies);
    for (std::size_t g = 0; g < groups.count; ++g) {
        for (std::size_t c = 0; c < settings.classes; ++c) {
            store(out.data + sizeof(V) * (settings.classes * g + c), centroid_of(tallies[g], c, settings.mean));
        }
    }
    const std::size_t head = sizeof(V) * settings.classes * groups.count;
    BitWriter fields(out.part(head, out.size - head));
    for (std::size_t i = 0; i < values.size; ++i) {
        const Tally<V>& tally = tallies[group_of(groups, i)];
        unsigned field = 0;
        if (tally.largest < FloatBits<V>::kInfinity) {
            const unsigned sign = std::signbit(values[i]) ? 1 : 0;
            field = settings.classes == 1 ? sign : 2 * sign + (is_upper(tally, values[i]) ? 1u : 0u);
        }
        fields.put(field, settings.classes);
    }
    fields.finish();
}

Status centroids_check(Bytes payload, std::uint64_t kept, std::uint64_t groups, std::size_t itemsize,
                       CentroidSettings settings) {
    return check_length(name_of(settings), payload, centroids_size(kept, groups, itemsize, settings));
}

template <typename V>
Status centroids_decode(Bytes payload, Groups groups, CentroidSettings settings, Span<V> values) {
    const Status status = centroids_check(payload, values.size, groups.count, sizeof(V), settings);
    if (!status.ok()) {
        return status;
    }
    const unsigned classes = settings.classes;
    const std::size_t head = sizeof(V) * classes * groups.count;
    BitReader fields(payload.part(head, payload.size - head));
    for (std::size_t i = 0; i < values.size; ++i) {
        const std::uint64_t field = fields.take(classes);
        const std::size_t place = classes * group_of(groups, i) + (field & (classes - 1));
        const V centroid = load<V>(payload.data + sizeof(V) * place);
        values[i] = field >> (classes - 1) != 0 ? -centroid : centroid;
        if (magnitude(centroid) > FloatBits<V>::kInfinity) {
            values[i] = std::numeric_limits<V>::quiet_NaN();
        }
    }
    if (!fields.padding_is_zero()) {
        return failure(Fault::corrupt, name_of(settings), "padding bits of the last byte, {}, are not zero",
                       payload[payload.size - 1]);
    }
    return {};
}

template std::size_t group_columns(Span<const std::uint32_t>, Span<std::uint32_t>, Span<std::uint32_t>);
template std::size_t group_columns(Span<const std::uint64_t>, Span<std::uint32_t>, Span<std::uint32_t>);
template void centroids_encode(Span<const float>, Groups, CentroidSettings, Span<Tally<float>>, Span<std::uint8_t>);
template void centroids_encode(Span<const double>, Groups, CentroidSettings, Span<Tally<double>>, Span<std::uint8_t>);
template Status centroids_decode(Bytes, Groups, CentroidSettings, Span<float>);
template Status centroids_decode(Bytes, Groups, CentroidSettings, Span<double>);

}  // namespace deepreduce
