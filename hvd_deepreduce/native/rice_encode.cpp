#include "bitstream.hpp"
#include "positions.hpp"
#include "rice.hpp"
#include "rice_table.hpp"

namespace deepreduce {
namespace {

using namespace rice;

template <typename P>
struct Block {
    std::array<P, kBlock> gaps;
    unsigned size = 0;
    P largest = 0;
};

/// Bits of a block under every entry of a group, and under the last one's quotients and escapes alone.
struct GroupBits {
    std::array<std::uint64_t, kLanes> total{};
    std::uint64_t without_remainders = 0;
};

template <typename P>
GroupBits cost_of(const Block<P>& block, unsigned group, unsigned width) {
    const GroupCosts& costs = group == 0 ? kSmallCosts : kCosts;
    const unsigned shift = shift_of(group);
    std::uint64_t sums = 0;
    std::uint64_t escapes = 0;
    for (unsigned i = 0; i < block.size; ++i) {
        sums += costs.bits[std::min<P>(block.gaps[i] >> shift, 255)];
    }
    if (block.largest >> shift >= kEscape * divisor(first_of(group)).m) {
        for (unsigned i = 0; i < block.size; ++i) {
            escapes += costs.escapes[std::min<P>(block.gaps[i] >> shift, 255)];
        }
    }
    GroupBits result;
    for (unsigned lane = 0; lane < lanes_of(group); ++lane) {
        const std::uint64_t escaped = escapes >> (16 * lane) & 0xffff;
        const std::uint64_t coded = block.size - escaped;
        result.total[lane] = (sums >> (16 * lane) & 0xffff) + coded * shift + escaped * (kEscape + width);
        // A remainder below 8 takes three bits at most.
        const std::uint64_t remainders = coded * (shift + 3);
        result.without_remainders = result.total[lane] > remainders ? result.total[lane] - remainders : 0;
    }
    return result;
}

unsigned distance(unsigned from, unsigned to) { return from < to ? to - from : from - to; }

constexpr unsigned change_bits(unsigned change) { return change == 0 ? 1 : change + 2; }

/// Finds the entry with the fewest bits, then the smallest change, then the smallest entry, without trying all.
template <typename P>
class Search {
  public:
    Search(const Block<P>& block, unsigned current, unsigned width) : block_(block), current_(current), width_(width) {}

    unsigned best() {
        const unsigned start = group_of(current_);
        std::uint64_t at_least = visit(start);
        for (unsigned group = start + 1; group < kGroups && may_win(floor_of(group)); ++group) {
            visit(group);
        }
        // Smaller divisors have no smaller quotients, so what those cost here they cost in every group further down.
        for (unsigned group = start; group > 0 && may_win(at_least);) {
            at_least = visit(--group);
        }
        return best_;
    }

  private:
    /// A gap takes a zero bit, two bits of remainder and the shift, or escapes; larger groups only add to it.
    std::uint64_t floor_of(unsigned group) const {
        return block_.size * std::uint64_t{std::min(shift_of(group) + 3, kEscape + width_)};
    }

    /// Whether an entry of another group with so many bits could be better or as good.
    bool may_win(std::uint64_t bits) const { return bits + change_bits(1) <= fewest_; }

    std::uint64_t visit(unsigned group) {
        const GroupBits bits = cost_of(block_, group, width_);
        for (unsigned lane = 0; lane < lanes_of(group); ++lane) {
            const unsigned entry = first_of(group) + lane;
            const unsigned change = distance(current_, entry);
            const std::uint64_t total = bits.total[lane] + change_bits(change);
            const unsigned best_change = distance(current_, best_);
            const bool wins_tie = change < best_change || (change == best_change && entry < best_);
            if (total < fewest_ || (total == fewest_ && wins_tie)) {
                fewest_ = total;
                best_ = entry;
            }
        }
        return bits.without_remainders;
    }

    const Block<P>& block_;
    unsigned current_;
    unsigned width_;
    unsigned best_ = 0;
    std::uint64_t fewest_ = ~std::uint64_t{0};
};

void put_change(BitWriter& writer, unsigned from, unsigned to) {
    if (from == to) {
        writer.put(0, 1);
        return;
    }
    writer.put(to < from ? 0b11 : 0b01, 2);
    for (unsigned i = 1; i < distance(from, to); ++i) {
        writer.put(1, 1);
    }
    writer.put(0, 1);
}

void put_gap(BitWriter& writer, std::uint64_t gap, Divisor divisor, unsigned width) {
    const std::uint64_t h = gap >> divisor.shift;
    if (h >= kEscape * divisor.m) {
        writer.put(low_bits(~std::uint64_t{0}, kEscape), kEscape);
        writer.put(gap, width);
        return;
    }
    const Code& code = kCodes[divisor.m][h];
    writer.put(code.bits, code.count);
    writer.put(low_bits(gap, divisor.shift), divisor.shift);
}

}  // namespace

std::uint64_t rice_capacity(std::uint64_t kept, std::uint64_t numel) {
    // To keep the divisor takes one bit a block, and then a gap at most its escape or a full quotient, remainder and
    // shift; what the encoder chooses instead is no longer.
    const std::uint64_t widest_gap = kEscape + 3 + escape_width(numel);
    return (kept * widest_gap + (kept + kBlock - 1) / kBlock + 7) / 8;
}

template <typename P>
Status rice_encode(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out, std::uint64_t& bits) {
    bits = 0;
    const Status status = check_positions(positions, numel);
    if (!status.ok() || positions.size == 0) {
        return status;
    }
    const unsigned width = escape_width(numel);
    unsigned entry = first_entry(numel, positions.size);
    BitWriter writer(out);
    std::uint64_t next = 0;
    for (std::size_t start = 0; start < positions.size; start += kBlock) {
        Block<P> block;
        block.size = static_cast<unsigned>(std::min<std::size_t>(kBlock, positions.size - start));
        for (unsigned i = 0; i < block.size; ++i) {
            block.gaps[i] = static_cast<P>(positions[start + i] - next);
            block.largest = std::max(block.largest, block.gaps[i]);
            next = std::uint64_t{positions[start + i]} + 1;
        }
        const unsigned best = Search(block, entry, width).best();
        put_change(writer, entry, best);
        entry = best;
        for (unsigned i = 0; i < block.size; ++i) {
            put_gap(writer, block.gaps[i], divisor(entry), width);
        }
    }
    bits = writer.finish();
    return {};
}

template Status rice_encode(Span<const std::uint32_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);
template Status rice_encode(Span<const std::uint64_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);

}  // namespace deepreduce
