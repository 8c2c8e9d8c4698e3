// Value codecs `onebit` and `twobit`: FORMAT.md, 5.6 and 5.7.
#pragma once

#include <array>

#include "magnitude.hpp"
#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

struct CentroidSettings {
    bool mean;         // else the smallest magnitude above zero
    unsigned classes;  // of magnitudes: 1 for `onebit`, 2 for `twobit`
};

/// Which centroids each value goes by; those of group 0 where `of` is empty.
struct Groups {
    Span<const std::uint32_t> of;
    std::size_t count;
};

/// What an encoder has to know of the values of a group.
template <typename V>
struct Tally {
    struct Class {
        double sum;
        std::uint64_t count;
        Bits<V> least;
    };
    std::array<Class, 2> classes;
    Bits<V> largest;
    double threshold;
};

/// Numbers the columns that hold a position from 0 on, and returns how many there are. `groups` is as long as
/// `positions`, `ranks` has one place for each column; all positions are below 2^32 columns.
template <typename P>
std::size_t group_columns(Span<const P> positions, Span<std::uint32_t> ranks, Span<std::uint32_t> groups);

/// Bytes of the payload of so many values.
std::uint64_t centroids_size(std::uint64_t kept, std::uint64_t groups, std::size_t itemsize, CentroidSettings settings);

/// `out` has centroids_size bytes, `tallies` one place for each group.
template <typename V>
void centroids_encode(Span<const V> values, Groups groups, CentroidSettings settings, Span<Tally<V>> tallies,
                      Span<std::uint8_t> out);

/// Fails unless the payload has the right length for the number kept and the groups.
Status centroids_check(Bytes payload, std::uint64_t kept, std::uint64_t groups, std::size_t itemsize,
                       CentroidSettings settings);

/// Fills `values`, whose size is the number kept.
template <typename V>
Status centroids_decode(Bytes payload, Groups groups, CentroidSettings settings, Span<V> values);

}  // namespace deepreduce
