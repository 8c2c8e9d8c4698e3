#include "bitstream.hpp"
#include "rice.hpp"
#include "rice_table.hpp"

namespace deepreduce {
namespace {

using namespace rice;

constexpr const char* kWhere = "rice";

Status truncated(Bytes payload, std::uint64_t gap, std::uint64_t kept) {
    return failure(Fault::truncated, kWhere, "payload of {} bytes ends within gap {} of {}", payload.size, gap, kept);
}

/// Reads the change at the head of a block; a change that leaves the table makes `entry` kEntries.
void take_change(BitReader& reader, unsigned& entry) {
    if (reader.take(1) == 0) {
        return;
    }
    const bool smaller = reader.take(1) != 0;
    unsigned amount = 1;
    while (amount < kEntries && reader.take(1) != 0) {
        ++amount;
    }
    const unsigned room = smaller ? entry : kEntries - 1 - entry;
    if (amount > room) {
        entry = kEntries;
    } else {
        entry = smaller ? entry - amount : entry + amount;
    }
}

/// Reads one gap; false for an escape that is none.
bool take_gap(BitReader& reader, Divisor divisor, unsigned width, std::uint64_t& gap) {
    constexpr std::uint64_t kEscapeBits = (std::uint64_t{1} << kEscape) - 1;
    std::uint64_t window = reader.peek();
    const ShortCode& code = kShortCodes[divisor.m][window & 0xff];
    if (code.count != 0) {
        gap = std::uint64_t{code.h} << divisor.shift | low_bits(window >> code.count, divisor.shift);
        reader.skip(code.count + divisor.shift);
        return true;
    }
    if ((window & kEscapeBits) == kEscapeBits) {
        reader.skip(kEscape);
        gap = reader.take(width);
        return gap >> divisor.shift >= kEscape * divisor.m;
    }
    const unsigned q = static_cast<unsigned>(__builtin_ctzll(~window));
    window >>= q + 1;
    unsigned used = q + 1;
    if (used + 3 + divisor.shift > BitReader::kWindow) {
        reader.skip(used);
        window = reader.peek();
        used = 0;
    }
    const Remainder form = kRemainders[divisor.m];
    std::uint64_t r = low_bits(window, form.low);
    window >>= form.low;
    used += form.low;
    if (r >= form.c) {
        r = 2 * r + (window & 1) - form.c;
        window >>= 1;
        used += 1;
    }
    gap = (q * std::uint64_t{divisor.m} + r) << divisor.shift | low_bits(window, divisor.shift);
    reader.skip(used + divisor.shift);
    return true;
}

}  // namespace

Status rice_check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
    const Status status = check_kept(kWhere, kept, numel);
    if (status.ok() && kept > std::uint64_t{payload.size} * 8) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes; {} gaps take a bit each at least", payload.size,
                       kept);
    }
    return status;
}

template <typename P>
Status rice_decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
    const std::size_t kept = positions.size;
    const Status status = rice_check(payload, kept, numel);
    if (!status.ok()) {
        return status;
    }
    const unsigned width = escape_width(numel);
    unsigned entry = kept == 0 ? 0 : first_entry(numel, kept);
    BitReader reader(payload);
    std::uint64_t next = 0;
    for (std::size_t start = 0; start < kept; start += kBlock) {
        take_change(reader, entry);
        if (reader.overrun()) {
            return truncated(payload, start, kept);
        }
        if (entry == kEntries) {
            return failure(Fault::corrupt, kWhere, "the change of divisor before gap {} leaves the table of {}", start,
                           kEntries);
        }
        const Divisor block_divisor = divisor(entry);
        const std::size_t end = std::min<std::size_t>(kept, start + kBlock);
        for (std::size_t i = start; i < end; ++i) {
            std::uint64_t gap = 0;
            const bool well_formed = take_gap(reader, block_divisor, width, gap);
            if (reader.overrun()) {
                return truncated(payload, i, kept);
            }
            if (!well_formed) {
                return failure(Fault::corrupt, kWhere, "gap {} is an escape for {}, which is below 24 times {}", i, gap,
                               block_divisor.value());
            }
            const std::uint64_t position = next + gap;
            if (position >= numel) {
                return failure(Fault::corrupt, kWhere, "position {} at gap {} is outside numel {}", position, i, numel);
            }
            positions[i] = static_cast<P>(position);
            next = position + 1;
        }
    }
    if (reader.bytes_left() != 0) {
        return failure(Fault::corrupt, kWhere, "payload of {} bytes; {} are left over", payload.size,
                       reader.bytes_left());
    }
    if (!reader.padding_is_zero()) {
        return failure(Fault::corrupt, kWhere, "padding bits of the last byte, {}, are not zero",
                       payload[payload.size - 1]);
    }
    return {};
}

template Status rice_decode(Bytes, std::uint64_t, Span<std::uint32_t>);
template Status rice_decode(Bytes, std::uint64_t, Span<std::uint64_t>);

}  // namespace deepreduce
