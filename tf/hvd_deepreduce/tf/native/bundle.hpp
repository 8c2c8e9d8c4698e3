// Bundles: FORMAT.md, 2. What wire/bundle.py does, for bytes that never pass through Python.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "span.hpp"

namespace deepreduce {

constexpr std::uint8_t kBundleVersion = 1;
constexpr std::size_t kBundleFixed = 12;
constexpr std::size_t kChecksumEnd = kBundleFixed + 4;
constexpr std::size_t kShortestBundle = kChecksumEnd + 3;
constexpr std::size_t kLongestMessage = 4096;

enum class BundleKind : std::uint8_t { frames = 0, error = 1 };

/// What must be equal on both sides, but for the rank.
struct BundleHeader {
    std::uint32_t fingerprint;
    std::uint64_t rank;
    std::uint64_t bucket;
    std::uint64_t step;
};

/// CRC-32 as zlib has it, eight bytes at a time.
inline std::uint32_t crc32(Bytes bytes, std::uint32_t crc = 0) {
    using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
    static const Tables tables = [] {
        Tables made{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t value = i;
            for (unsigned bit = 0; bit < 8; ++bit) {
                value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0u);
            }
            made[0][i] = value;
        }
        for (std::size_t t = 1; t < 8; ++t) {
            for (std::size_t i = 0; i < 256; ++i) {
                made[t][i] = made[t - 1][i] >> 8 ^ made[0][made[t - 1][i] & 0xff];
            }
        }
        return made;
    }();
    crc = ~crc;
    std::size_t i = 0;
    for (; i + 8 <= bytes.size; i += 8) {
        std::uint64_t word;
        std::memcpy(&word, bytes.data + i, 8);
        word ^= crc;
        crc = 0;
        for (std::size_t t = 0; t < 8; ++t) {
            crc ^= tables[7 - t][word >> (8 * t) & 0xff];
        }
    }
    for (; i < bytes.size; ++i) {
        crc = crc >> 8 ^ tables[0][(crc ^ bytes[i]) & 0xff];
    }
    return ~crc;
}

inline void append_varint(std::vector<std::uint8_t>& out, std::uint64_t value) {
    for (; value > 0x7f; value >>= 7) {
        out.push_back(static_cast<std::uint8_t>((value & 0x7f) | 0x80));
    }
    out.push_back(static_cast<std::uint8_t>(value));
}

/// False at the end of the bytes, and for more bytes than a varint needs.
inline bool take_varint(Bytes& bytes, std::uint64_t& value) {
    value = 0;
    for (unsigned i = 0; i < 9 && i < bytes.size; ++i) {
        const std::uint8_t byte = bytes[i];
        value |= std::uint64_t{byte & 0x7fu} << (7 * i);
        if (byte < 0x80) {
            bytes = bytes.part(i + 1, bytes.size - i - 1);
            return byte != 0 || i == 0;
        }
    }
    return false;
}

/// What a bundle of `length` bytes is padded to, after one of `previous`; see wire/bundle.py.
inline std::uint64_t padded_length(std::uint64_t length, std::uint64_t previous) {
    if (previous - previous / 16 <= length && length <= previous) {
        return previous;
    }
    unsigned bits = 0;
    while (bits < 64 && length >> bits != 0) {
        ++bits;
    }
    const std::uint64_t step = std::max<std::uint64_t>(8, bits > 6 ? std::uint64_t{1} << (bits - 6) : 1);
    return (length + step / 4 + step - 1) / step * step;
}

/// `head` of kChecksumEnd bytes stands before the tail, whose padding is there already.
inline void write_head(const BundleHeader& header, BundleKind kind, Span<std::uint8_t> bundle) {
    const auto length = static_cast<std::uint32_t>(bundle.size);
    bundle[0] = 'D';
    bundle[1] = 'R';
    bundle[2] = kBundleVersion;
    bundle[3] = static_cast<std::uint8_t>(kind);
    std::memcpy(bundle.data + 4, &length, 4);
    std::memcpy(bundle.data + 8, &header.fingerprint, 4);
    const Bytes head = bundle.part(0, kBundleFixed);
    const Bytes tail = bundle.part(kChecksumEnd, bundle.size - kChecksumEnd);
    const std::uint32_t checksum = crc32(tail, crc32(head));
    std::memcpy(bundle.data + kBundleFixed, &checksum, 4);
}

/// Rank, bucket and step, as they stand at the beginning of the tail.
inline std::vector<std::uint8_t> tail_of(const BundleHeader& header) {
    std::vector<std::uint8_t> tail;
    append_varint(tail, header.rank);
    append_varint(tail, header.bucket);
    append_varint(tail, header.step);
    return tail;
}

/// One body per rank, in rank order, where they lie in `gathered`; false unless all are sound bundles of frames.
inline bool split_bundles(Bytes gathered, BundleHeader expected, std::uint64_t ranks, std::vector<Bytes>& bodies) {
    bodies.clear();
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        if (gathered.size < kShortestBundle) {
            return false;
        }
        std::uint32_t length = 0;
        std::uint32_t fingerprint = 0;
        std::uint32_t stored = 0;
        std::memcpy(&length, gathered.data + 4, 4);
        std::memcpy(&fingerprint, gathered.data + 8, 4);
        std::memcpy(&stored, gathered.data + kBundleFixed, 4);
        if (gathered[0] != 'D' || gathered[1] != 'R' || gathered[2] != kBundleVersion ||
            gathered[3] != static_cast<std::uint8_t>(BundleKind::frames) || length < kShortestBundle ||
            length > gathered.size || fingerprint != expected.fingerprint) {
            return false;
        }
        Bytes tail = gathered.part(kChecksumEnd, length - kChecksumEnd);
        if (crc32(tail, crc32(gathered.part(0, kBundleFixed))) != stored) {
            return false;
        }
        std::uint64_t of_rank = 0;
        std::uint64_t of_bucket = 0;
        std::uint64_t of_step = 0;
        if (!take_varint(tail, of_rank) || !take_varint(tail, of_bucket) || !take_varint(tail, of_step) ||
            of_rank != rank || of_bucket != expected.bucket || of_step != expected.step) {
            return false;
        }
        bodies.push_back(tail);
        gathered = gathered.part(length, gathered.size - length);
    }
    return gathered.size == 0;
}

}  // namespace deepreduce
