// BLAKE2b with a digest of 8 bytes and no key (RFC 7693): the key of a draw is one, FORMAT.md, 6.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace deepreduce {

namespace blake2b_detail {

constexpr std::array<std::uint64_t, 8> kInitial = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};

constexpr std::uint8_t kSigma[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

inline std::uint64_t rotate(std::uint64_t value, unsigned by) { return value >> by | value << (64 - by); }

inline void compress(std::array<std::uint64_t, 8>& h, const std::uint8_t* block, std::uint64_t taken, bool last) {
    std::uint64_t m[16];
    std::memcpy(m, block, sizeof m);
    std::uint64_t v[16];
    for (unsigned i = 0; i < 8; ++i) {
        v[i] = h[i];
        v[i + 8] = kInitial[i];
    }
    v[12] ^= taken;
    v[14] = last ? ~v[14] : v[14];
    const auto mix = [&](unsigned a, unsigned b, unsigned c, unsigned d, std::uint64_t x, std::uint64_t y) {
        v[a] += v[b] + x;
        v[d] = rotate(v[d] ^ v[a], 32);
        v[c] += v[d];
        v[b] = rotate(v[b] ^ v[c], 24);
        v[a] += v[b] + y;
        v[d] = rotate(v[d] ^ v[a], 16);
        v[c] += v[d];
        v[b] = rotate(v[b] ^ v[c], 63);
    };
    for (unsigned round = 0; round < 12; ++round) {
        const auto& s = kSigma[round % 10];
        for (unsigned i = 0; i < 4; ++i) {
            mix(i, i + 4, i + 8, i + 12, m[s[2 * i]], m[s[2 * i + 1]]);
        }
        for (unsigned i = 0; i < 4; ++i) {
            mix(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
        }
    }
    for (unsigned i = 0; i < 8; ++i) {
        h[i] ^= v[i] ^ v[i + 8];
    }
}

}  // namespace blake2b_detail

/// The digest as a little-endian number. For little-endian machines, as the wire format's payloads are.
inline std::uint64_t blake2b_u64(const std::string& text) {
    using namespace blake2b_detail;
    constexpr std::size_t kBlock = 128;
    auto h = kInitial;
    h[0] ^= 0x01010000u ^ 8u;
    std::size_t start = 0;
    for (; text.size() - start > kBlock; start += kBlock) {
        compress(h, reinterpret_cast<const std::uint8_t*>(text.data()) + start, start + kBlock, false);
    }
    std::uint8_t block[kBlock] = {};
    std::memcpy(block, text.data() + start, text.size() - start);
    compress(h, block, text.size(), true);
    return h[0];
}

}  // namespace deepreduce
