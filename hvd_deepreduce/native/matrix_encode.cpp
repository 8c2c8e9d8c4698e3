#include "bytes.hpp"
#include "matrix.hpp"
#include "matrix_choice.hpp"
#include "matrix_even.hpp"
#include "positions.hpp"
#include "rice.hpp"

namespace deepreduce {
namespace {

using namespace matrix;

void put_classes(RangeEncoder& coder, const Side& side) {
    ClassModel model(side.context);
    for (unsigned line_class : side.classes) {
        model.walk([&](BitModel& bit_model) {
            const unsigned bit = line_class == 0 ? 0 : 1;
            line_class -= bit;
            const std::uint64_t share = bit_model.share_of_one();
            coder.put(bit != 0 ? 0 : share, bit != 0 ? share : kTotal - share);
            bit_model.count(bit);
            return bit;
        });
    }
}

template <typename P, typename Columns>
void put_positions(RangeEncoder& coder, const Rows& rows, const Columns& columns, std::uint64_t width,
                   Span<const P> positions) {
    Place place;
    place.rate = rows.rate(0);
    std::uint64_t row_start = 0;
    for (const P position : positions) {
        for (;;) {
            const bool here = position - row_start < width;
            const std::uint64_t target = here ? columns.at(position - row_start) : columns.end();
            const std::uint64_t hazard = place.passed + times(place.rate, target - place.at);
            if (hazard < kReach) {
                if (here) {
                    break;
                }
                place.next_row(rows, hazard);
                row_start += width;
                continue;
            }
            const std::uint64_t far = place.out_of_reach(columns);
            const std::uint64_t rest = survival(place.hazard_to(columns, far) >> kFine);
            coder.put(kTotal - rest, rest);
            place.go_to(columns, far);
        }
        const std::uint64_t column = position - row_start;
        const std::uint64_t start = survival(place.hazard_to(columns, column) >> kFine);
        const std::uint64_t end = survival(place.hazard_to(columns, column + 1) >> kFine);
        coder.put(kTotal - start, start - end);
        place.go_to(columns, column + 1);
        if (coder.full()) {
            return;
        }
    }
}

/// A code's length comes before it and is known after it: room for any is left between.
constexpr std::size_t kLongestLength = 9;

/// Puts the length behind `head` bytes, moves the code up to it, and returns the bytes of all.
std::size_t put_length(Span<std::uint8_t> out, std::size_t head, std::size_t code) {
    std::size_t end = head;
    std::uint64_t length = code;
    for (; length >= 0x80; length >>= 7) {
        out[end++] = static_cast<std::uint8_t>(length | 0x80);
    }
    out[end++] = static_cast<std::uint8_t>(length);
    std::copy_n(out.data + head + kLongestLength, code, out.data + end);
    return end + code;
}

template <typename P>
void count_kept(Span<const P> positions, std::uint64_t width, std::uint64_t* of_rows, std::uint64_t* of_columns) {
    std::uint64_t row = 0;
    std::uint64_t row_start = 0;
    for (const P position : positions) {
        while (position - row_start >= width) {
            ++row;
            row_start += width;
        }
        if (of_rows != nullptr) {
            ++of_rows[row];
        }
        if (of_columns != nullptr) {
            ++of_columns[position - row_start];
        }
    }
}

/// Writes the payload of the model; false where there is no model, or none that fits `out`.
template <typename P>
bool put_model(Span<const P> positions, std::uint64_t rows, std::uint64_t columns, const Scratch& scratch,
               Span<std::uint8_t> out, std::uint64_t& size) {
    const bool by_row = scratch.row_classes.size != 0;
    const bool by_column = scratch.column_classes.size != 0;
    std::fill(scratch.counts.begin(), scratch.counts.end(), 0);
    std::uint64_t* const column_counts = scratch.counts.data + scratch.row_classes.size;
    count_kept(positions, columns, by_row ? scratch.counts.data : nullptr, by_column ? column_counts : nullptr);
    Side row_side;
    Side column_side;
    row_side.counts = scratch.counts.part(0, scratch.row_classes.size);
    row_side.scratch = scratch.row_classes;
    row_side.group = rows;
    column_side.counts = scratch.counts.part(scratch.row_classes.size, scratch.column_classes.size);
    column_side.scratch = scratch.column_classes;
    column_side.group = columns;
    choose(row_side);
    choose(column_side);
    unsigned code = 0;
    constexpr std::size_t kHead = 5;
    if (!fit(row_side, column_side, positions.size, code) || out.size < kHead + kLongestLength) {
        return false;
    }
    RangeEncoder coder(out.part(kHead + kLongestLength, out.size - kHead - kLongestLength));
    put_classes(coder, row_side);
    put_classes(coder, column_side);
    const Rows rates{row_side.classes, row_side.group, rows, scale_of(code)};
    if (column_side.group == columns) {
        put_positions(coder, rates, UniformColumns{columns}, columns, positions);
    } else {
        const WeightedColumns weighted(column_side.classes, column_side.group, columns, scratch);
        put_positions(coder, rates, weighted, columns, positions);
    }
    coder.finish();
    if (coder.full()) {
        return false;
    }
    out[0] = static_cast<std::uint8_t>(kModel + (row_side.context ? kRowContext : 0) +
                                       (column_side.context ? kColumnContext : 0));
    store(out.data + 1, static_cast<std::uint16_t>(code));
    out[3] = static_cast<std::uint8_t>(row_side.group == rows ? 0 : row_side.group);
    out[4] = static_cast<std::uint8_t>(column_side.group == columns ? 0 : column_side.group);
    size = put_length(out, kHead, coder.size());
    return true;
}

/// Writes the even payload; its length, or that of the room where this is too small.
template <typename P>
std::uint64_t put_even_payload(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out) {
    if (out.size <= 1 + kLongestLength) {
        return out.size;
    }
    RangeEncoder coder(out.part(1 + kLongestLength, out.size - 1 - kLongestLength));
    put_even(coder, positions, numel);
    if (coder.full()) {
        return out.size;
    }
    out[0] = kEven;
    return put_length(out, 1, coder.size());
}

}  // namespace

std::uint64_t matrix_capacity(std::uint64_t kept, std::uint64_t numel) { return 1 + rice_capacity(kept, numel) + 16; }

Room matrix_encode_room(std::uint64_t kept, std::uint64_t rows, std::uint64_t columns) {
    Room room;
    room.row_classes = rows > 1 && rows <= most_rows(kept) ? rows : 0;
    room.column_classes = columns > 1 && columns <= most_columns(kept) ? columns : 0;
    room.counts = room.row_classes + room.column_classes;
    room.sums = room.column_classes == 0 ? 0 : columns + 1;
    room.starts = room.column_classes == 0 ? 0 : starts_room(columns);
    return room;
}

template <typename P>
Status matrix_encode(Span<const P> positions, std::uint64_t rows, std::uint64_t columns, Scratch scratch,
                     Span<std::uint8_t> out, std::uint64_t& size) {
    const std::uint64_t numel = rows * columns;
    std::uint64_t bits = 0;
    const Status status = rice_encode(positions, numel, Span<std::uint8_t>{}, bits);
    if (!status.ok()) {
        return status;
    }
    const std::uint64_t plain = 1 + (bits + 7) / 8;
    const bool even_tried = try_even(positions.size, numel);
    const std::uint64_t even = even_tried ? put_even_payload(positions, numel, out) : plain;
    const bool has_model = positions.size > 0 && rows <= most_rows(positions.size);
    if (has_model && put_model(positions, rows, columns, scratch, out, size) && size < std::min(plain, even)) {
        return {};
    }
    // One place to write to: what is shortest and was written over is written again.
    if (even < plain) {
        size = put_even_payload(positions, numel, out);
        return {};
    }
    size = plain;
    out[0] = kPlain;
    return rice_encode(positions, numel, out.part(1, out.size - 1), bits);
}

template Status matrix_encode(Span<const std::uint32_t>, std::uint64_t, std::uint64_t, Scratch, Span<std::uint8_t>,
                              std::uint64_t&);
template Status matrix_encode(Span<const std::uint64_t>, std::uint64_t, std::uint64_t, Scratch, Span<std::uint8_t>,
                              std::uint64_t&);

}  // namespace deepreduce
