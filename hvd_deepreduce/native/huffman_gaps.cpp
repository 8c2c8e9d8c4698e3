#include "huffman_gaps.hpp"

#include "huffman_code.hpp"
#include "positions.hpp"

namespace deepreduce {
namespace {

using namespace huffman;

constexpr const char* kWhere = "huffman of gaps";
/// Of the mantissa, in the finest classes.
constexpr unsigned kFinest = 3;
constexpr unsigned kHeadBits = 1 + 2 + 8;
constexpr unsigned kLengthBits = 4;

unsigned digits(std::uint64_t number) { return 64 - static_cast<unsigned>(__builtin_clzll(number | 1)); }

/// W: the bits of a gap that is stored as it is.
unsigned width_of(std::uint64_t numel) { return digits(numel - 1); }

/// A class of gaps and the lower bits that tell it from others of its class.
struct Split {
    unsigned symbol;
    unsigned rest;
};

Split split(std::uint64_t gap, unsigned mantissa) {
    const unsigned rest = digits(gap | std::uint64_t{1} << mantissa) - 1 - mantissa;
    return {static_cast<unsigned>((rest << mantissa) + (gap >> rest)), rest};
}

unsigned rest_of(unsigned symbol, unsigned mantissa) {
    const unsigned octave = symbol >> mantissa;
    return octave < 2 ? 0 : octave - 1;
}

/// The lowest gap of a class.
std::uint64_t base_of(unsigned symbol, unsigned mantissa) {
    const unsigned rest = rest_of(symbol, mantissa);
    return std::uint64_t{symbol - (rest << mantissa)} << rest;
}

template <typename P>
Weights count_classes(Span<const P> positions) {
    Weights weights{};
    P next = 0;
    for (const P position : positions) {
        ++weights[split(static_cast<P>(position - next), kFinest).symbol];
        next = static_cast<P>(position + 1);
    }
    return weights;
}

/// A way to write a payload; `bits` is what it takes.
struct Plan {
    bool coded = false;
    unsigned mantissa = 0;
    unsigned symbols = 0;
    Lengths lengths{};
    std::uint64_t bits = 0;
};

Plan stored(std::uint64_t kept, std::uint64_t numel) {
    Plan plan;
    plan.bits = 1 + kept * width_of(numel);
    return plan;
}

Plan coded(const Weights& finest, unsigned mantissa) {
    Weights weights{};
    for (unsigned symbol = 0; symbol < kSymbols; ++symbol) {
        if (finest[symbol] != 0) {
            weights[split(base_of(symbol, kFinest), mantissa).symbol] += finest[symbol];
        }
    }
    Plan plan;
    plan.coded = true;
    plan.mantissa = mantissa;
    plan.lengths = lengths_of(weights);
    for (unsigned symbol = 0; symbol < kSymbols; ++symbol) {
        if (weights[symbol] != 0) {
            plan.symbols = symbol + 1;
            plan.bits += weights[symbol] * (plan.lengths[symbol] + rest_of(symbol, mantissa));
        }
    }
    plan.bits += kHeadBits + kLengthBits * std::uint64_t{plan.symbols};
    return plan;
}

template <typename P>
Plan fewest_bits(Span<const P> positions, std::uint64_t numel) {
    const Weights finest = count_classes(positions);
    Plan best = stored(positions.size, numel);
    for (unsigned mantissa = 0; mantissa <= kFinest; ++mantissa) {
        const Plan plan = coded(finest, mantissa);
        if (plan.bits < best.bits) {
            best = plan;
        }
    }
    return best;
}

template <typename P, typename PutGap>
void put_gaps(Span<const P> positions, PutGap put_gap) {
    std::uint64_t next = 0;
    for (const P position : positions) {
        put_gap(position - next);
        next = std::uint64_t{position} + 1;
    }
}

/// take_gap(gap) is false where the stream holds a word that is none.
template <typename P, typename TakeGap>
Status take_gaps(Bytes payload, BitReader& reader, std::uint64_t numel, Span<P> positions, TakeGap take_gap) {
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < positions.size; ++i) {
        std::uint64_t gap = 0;
        const bool known = take_gap(gap);
        if (reader.overrun()) {
            return failure(Fault::truncated, kWhere, "payload of {} bytes ends within gap {} of {}", payload.size, i,
                           positions.size);
        }
        if (!known) {
            return failure(Fault::corrupt, kWhere, "gap {} has a word that is none", i);
        }
        const std::uint64_t position = next + gap;
        if (position >= numel) {
            return failure(Fault::corrupt, kWhere, "position {} at gap {} is outside numel {}", position, i, numel);
        }
        positions[i] = static_cast<P>(position);
        next = position + 1;
    }
    return finish(kWhere, payload, reader);
}

/// Reads what stands before the gaps.
Status take_code(Bytes payload, BitReader& reader, std::uint64_t numel, unsigned& mantissa, Lengths& lengths) {
    mantissa = static_cast<unsigned>(reader.take(2));
    const unsigned symbols = static_cast<unsigned>(reader.take(8)) + 1;
    for (unsigned symbol = 0; symbol < symbols; ++symbol) {
        lengths[symbol] = static_cast<std::uint8_t>(reader.take(kLengthBits));
    }
    if (reader.overrun()) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes ends within the lengths of the code",
                       payload.size);
    }
    const unsigned highest = split(numel - 1, mantissa).symbol;
    if (symbols > highest + 1) {
        return failure(Fault::corrupt, kWhere, "{} classes; gaps below numel {} have {}", symbols, numel, highest + 1);
    }
    if (lengths[symbols - 1] == 0) {
        return failure(Fault::corrupt, kWhere, "the last of {} classes has no word", symbols);
    }
    if (!is_code(lengths)) {
        return failure(Fault::corrupt, kWhere, "the lengths of {} classes are those of no code", symbols);
    }
    return {};
}

}  // namespace

std::uint64_t huffman_gaps_capacity(std::uint64_t kept, std::uint64_t numel) {
    return kept == 0 ? 0 : (1 + kept * width_of(numel) + 7) / 8;
}

template <typename P>
Status huffman_gaps_encode(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out, std::uint64_t& bits) {
    bits = 0;
    const Status status = check_positions(positions, numel);
    if (!status.ok() || positions.size == 0) {
        return status;
    }
    const Plan plan = fewest_bits(positions, numel);
    BitWriter writer(out);
    writer.put(plan.coded, 1);
    if (plan.coded) {
        writer.put(plan.mantissa, 2);
        writer.put(plan.symbols - 1, 8);
        for (unsigned symbol = 0; symbol < plan.symbols; ++symbol) {
            writer.put(plan.lengths[symbol], kLengthBits);
        }
        const auto words = words_of(plan.lengths);
        put_gaps(positions, [&](std::uint64_t gap) {
            const auto [symbol, rest] = split(gap, plan.mantissa);
            const unsigned length = plan.lengths[symbol];
            writer.put(words[symbol] | low_bits(gap, rest) << length, length + rest);
        });
    } else {
        const unsigned width = width_of(numel);
        put_gaps(positions, [&](std::uint64_t gap) { writer.put(gap, width); });
    }
    bits = writer.finish();
    return {};
}

Status huffman_gaps_check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
    const Status status = check_kept(kWhere, kept, numel);
    if (status.ok() && kept > std::uint64_t{payload.size} * 8) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes; {} gaps take a bit each at least", payload.size,
                       kept);
    }
    return status;
}

template <typename P>
Status huffman_gaps_decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
    const Status status = huffman_gaps_check(payload, positions.size, numel);
    if (!status.ok()) {
        return status;
    }
    BitReader reader(payload);
    if (positions.size == 0) {
        return finish(kWhere, payload, reader);
    }
    if (reader.take(1) == 0) {
        const unsigned width = width_of(numel);
        return take_gaps(payload, reader, numel, positions, [&](std::uint64_t& gap) {
            gap = reader.take(width);
            return true;
        });
    }
    unsigned mantissa = 0;
    Lengths lengths{};
    const Status code = take_code(payload, reader, numel, mantissa, lengths);
    if (!code.ok()) {
        return code;
    }
    const Table table(lengths);
    return take_gaps(payload, reader, numel, positions, [&](std::uint64_t& gap) {
        const std::uint64_t window = reader.peek();
        const Table::Entry entry = table[window];
        const unsigned rest = rest_of(entry.symbol, mantissa);
        gap = base_of(entry.symbol, mantissa) | low_bits(window >> entry.length, rest);
        reader.skip(entry.length + rest);
        return entry.length != 0;
    });
}

template Status huffman_gaps_encode(Span<const std::uint32_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);
template Status huffman_gaps_encode(Span<const std::uint64_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);
template Status huffman_gaps_decode(Bytes, std::uint64_t, Span<std::uint32_t>);
template Status huffman_gaps_decode(Bytes, std::uint64_t, Span<std::uint64_t>);

}  // namespace deepreduce
