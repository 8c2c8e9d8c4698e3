#include "huffman_bytes.hpp"

#include <algorithm>

#include "huffman_code.hpp"
#include "positions.hpp"

namespace deepreduce {
namespace {

using namespace huffman;

constexpr const char* kWhere = "huffman of bytes";

unsigned bytes_of_position(std::uint64_t numel) { return numel <= kMaxNarrow ? 4 : 8; }

/// How often every byte occurs in all positions below numel. No word is longer than kLongest: for a length of 16 a byte
/// must have 1/2584 of the sum or less (Fibonacci), and none that occurs has less than 1/2044.
Weights weights_of(std::uint64_t numel) {
    Weights weights{};
    for (unsigned place = 0; place < bytes_of_position(numel); ++place) {
        if (place > 4) {
            weights[0] += numel;
            continue;
        }
        const std::uint64_t unit = std::uint64_t{1} << (8 * place);
        const std::uint64_t cycles = numel / unit / kSymbols;
        std::uint64_t rest = numel - cycles * unit * kSymbols;
        for (std::uint64_t& weight : weights) {
            const std::uint64_t begun = std::min(rest, unit);
            weight += cycles * unit + begun;
            rest -= begun;
        }
    }
    return weights;
}

}  // namespace

std::uint64_t huffman_bytes_capacity(std::uint64_t kept, std::uint64_t numel) {
    return (kept * bytes_of_position(numel) * kLongest + 7) / 8;
}

template <typename P>
Status huffman_bytes_encode(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out, std::uint64_t& bits) {
    bits = 0;
    const Status status = check_positions(positions, numel);
    if (!status.ok() || positions.size == 0) {
        return status;
    }
    const Lengths lengths = lengths_of(weights_of(numel));
    const auto words = words_of(lengths);
    BitWriter writer(out);
    for (const P position : positions) {
        for (unsigned place = 0; place < sizeof(P); place += 2) {
            const unsigned low = position >> (8 * place) & 0xff;
            const unsigned high = position >> (8 * place + 8) & 0xff;
            writer.put(words[low] | std::uint64_t{words[high]} << lengths[low], lengths[low] + lengths[high]);
        }
    }
    bits = writer.finish();
    return {};
}

Status huffman_bytes_check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
    const Status status = check_kept(kWhere, kept, numel);
    if (status.ok() && kept * bytes_of_position(numel) > std::uint64_t{payload.size} * 8) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes; {} positions take {} bits each at least",
                       payload.size, kept, bytes_of_position(numel));
    }
    return status;
}

template <typename P>
Status huffman_bytes_decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
    const Status status = huffman_bytes_check(payload, positions.size, numel);
    if (!status.ok()) {
        return status;
    }
    BitReader reader(payload);
    if (positions.size != 0) {
        const Table table(lengths_of(weights_of(numel)));
        std::uint64_t next = 0;
        for (std::size_t i = 0; i < positions.size; ++i) {
            std::uint64_t position = 0;
            bool known = true;
            for (unsigned place = 0; place < sizeof(P); place += 2) {
                const std::uint64_t window = reader.peek();
                const Table::Entry low = table[window];
                const Table::Entry high = table[window >> low.length];
                position |= (low.symbol | std::uint64_t{high.symbol} << 8) << (8 * place);
                known &= low.length != 0 && high.length != 0;
                reader.skip(low.length + high.length);
            }
            if (reader.overrun()) {
                return failure(Fault::truncated, kWhere, "payload of {} bytes ends within position {} of {}",
                               payload.size, i, positions.size);
            }
            if (!known) {
                return failure(Fault::corrupt, kWhere, "position {} has a word that is none", i);
            }
            if (position >= numel) {
                return failure(Fault::corrupt, kWhere, "{} at index {} is outside numel {}", position, i, numel);
            }
            if (position < next) {
                return failure(Fault::corrupt, kWhere, "{} at index {} is not above {} before it", position, i,
                               next - 1);
            }
            positions[i] = static_cast<P>(position);
            next = position + 1;
        }
    }
    return finish(kWhere, payload, reader);
}

template Status huffman_bytes_encode(Span<const std::uint32_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);
template Status huffman_bytes_encode(Span<const std::uint64_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);
template Status huffman_bytes_decode(Bytes, std::uint64_t, Span<std::uint32_t>);
template Status huffman_bytes_decode(Bytes, std::uint64_t, Span<std::uint64_t>);

}  // namespace deepreduce
