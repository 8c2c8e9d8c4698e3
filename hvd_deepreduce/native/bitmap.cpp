#include "bitmap.hpp"

#include "bytes.hpp"
#include "positions.hpp"

namespace deepreduce {
namespace {

constexpr const char* kWhere = "bitmap";

std::uint64_t load_word(Bytes bytes, std::size_t start) {
    if (bytes.size - start >= 8) {
        return load<std::uint64_t>(bytes.data + start);
    }
    std::uint64_t word = 0;
    for (std::size_t i = start; i < bytes.size; ++i) {
        word |= std::uint64_t{bytes[i]} << (8 * (i - start));
    }
    return word;
}

std::uint64_t count_set(Bytes bytes) {
    std::uint64_t count = 0;
    for (std::size_t start = 0; start < bytes.size; start += 8) {
        count += static_cast<unsigned>(__builtin_popcountll(load_word(bytes, start)));
    }
    return count;
}

}  // namespace

template <typename P>
Status bitmap_encode(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out) {
    const Status status = check_positions(positions, numel);
    if (!status.ok()) {
        return status;
    }
    if (out.size != 0) {
        std::memset(out.data, 0, out.size);
    }
    for (const P position : positions) {
        std::uint8_t& byte = out[position / 8];
        byte = static_cast<std::uint8_t>(byte | 1u << (position % 8));
    }
    return {};
}

Status bitmap_check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
    const Status status = check_kept(kWhere, kept, numel);
    return status.ok() ? check_length(kWhere, payload, bitmap_size(numel)) : status;
}

template <typename P>
Status bitmap_decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
    const Status status = bitmap_check(payload, positions.size, numel);
    if (!status.ok()) {
        return status;
    }
    if (numel % 8 != 0 && payload[payload.size - 1] >> (numel % 8) != 0) {
        return failure(Fault::corrupt, kWhere, "the last byte is {}; bits at and beyond numel {} must be zero",
                       payload[payload.size - 1], numel);
    }
    std::size_t found = 0;
    bool too_many = false;
    for (std::size_t start = 0; start < payload.size && !too_many; start += 8) {
        for (std::uint64_t word = load_word(payload, start); word != 0; word &= word - 1) {
            if (found == positions.size) {
                too_many = true;
                break;
            }
            positions[found++] = static_cast<P>(start * 8 + static_cast<unsigned>(__builtin_ctzll(word)));
        }
    }
    if (too_many || found < positions.size) {
        return failure(Fault::corrupt, kWhere, "{} bits are set; kept is {}", count_set(payload), positions.size);
    }
    return {};
}

template Status bitmap_encode(Span<const std::uint32_t>, std::uint64_t, Span<std::uint8_t>);
template Status bitmap_encode(Span<const std::uint64_t>, std::uint64_t, Span<std::uint8_t>);
template Status bitmap_decode(Bytes, std::uint64_t, Span<std::uint32_t>);
template Status bitmap_decode(Bytes, std::uint64_t, Span<std::uint64_t>);

}  // namespace deepreduce
