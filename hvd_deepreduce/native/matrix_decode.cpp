#include "bytes.hpp"
#include "matrix.hpp"
#include "matrix_even.hpp"
#include "rice.hpp"

namespace deepreduce {
namespace {

using namespace matrix;

constexpr const char* kWhere = "matrix";

/// A payload less the code.
struct Head {
    unsigned form = 0;
    std::uint64_t scale = 0;
    std::uint64_t row_group = 0;
    std::uint64_t column_group = 0;
    Bytes code;
};

constexpr std::size_t kFixed = 5;

/// More than near_hazard errs by within reach; a good deal more, and still little against a row.
constexpr std::uint64_t kNear = 64;

Status take_code(Bytes rest, Bytes& code) {
    std::uint64_t length = 0;
    for (unsigned i = 0; i < 9; ++i) {
        if (i == rest.size) {
            return failure(Fault::truncated, kWhere, "payload ends within the length of its code");
        }
        length |= std::uint64_t{rest[i] & 0x7fu} << (7 * i);
        if (rest[i] < 0x80) {
            if (rest[i] == 0 && i > 0) {
                break;
            }
            code = rest.part(i + 1, rest.size - i - 1);
            return check_length(kWhere, code, length);
        }
    }
    return failure(Fault::corrupt, kWhere, "the length of the code is no varint in its shortest form");
}

Status read_head(Bytes payload, std::uint64_t kept, std::uint64_t rows, std::uint64_t columns, Head& head) {
    if (payload.size == 0) {
        return failure(Fault::truncated, kWhere, "payload of 0 bytes; its form is needed");
    }
    head.form = payload[0];
    if (head.form == kPlain) {
        head.code = payload.part(1, payload.size - 1);
        return rice_check(head.code, kept, rows * columns);
    }
    if (head.form > kEven) {
        return failure(Fault::corrupt, kWhere, "form {}; the highest is {}", head.form, kEven);
    }
    if (head.form == kEven) {
        const Status status = take_code(payload.part(1, payload.size - 1), head.code);
        if (!status.ok()) {
            return status;
        }
        if (!may_be_even(kept, rows * columns)) {
            return failure(Fault::corrupt, kWhere, "{} of {} elements are not coded as even", kept, rows * columns);
        }
        return check_kept(kWhere, kept, rows * columns);
    }
    if (payload.size < kFixed) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes; {} are needed", payload.size, kFixed);
    }
    head.scale = scale_of(load<std::uint16_t>(payload.data + 1));
    head.row_group = payload[3] == 0 ? rows : payload[3];
    head.column_group = payload[4] == 0 ? columns : payload[4];
    const Status status = take_code(payload.part(kFixed, payload.size - kFixed), head.code);
    if (!status.ok()) {
        return status;
    }
    const bool weighted = payload[4] != 0;
    if (rows > most_rows(kept) || (weighted && columns > most_columns(kept))) {
        return failure(Fault::corrupt, kWhere, "{} rows of {} columns have no model where {} are kept", rows, columns,
                       kept);
    }
    if (payload[3] >= rows + (payload[3] == 0) || payload[4] >= columns + (payload[4] == 0)) {
        return failure(Fault::corrupt, kWhere, "groups of {} rows and {} columns are no parts", payload[3], payload[4]);
    }
    // A cell is kept with a probability of 1 - 2**-6 at most, which takes 1/44 of a bit.
    if (kept > 352 * (std::uint64_t{head.code.size} + 8)) {
        return failure(Fault::truncated, kWhere, "a code of {} bytes can't hold {} positions", head.code.size, kept);
    }
    return check_kept(kWhere, kept, rows * columns);
}

unsigned take_bit(RangeDecoder& coder, BitModel& model) {
    const std::uint64_t share = model.share_of_one();
    const unsigned bit = coder.value() < share ? 1 : 0;
    coder.take(bit != 0 ? 0 : share, bit != 0 ? share : kTotal - share);
    model.count(bit);
    return bit;
}

/// Reads classes and returns the highest.
unsigned take_classes(RangeDecoder& coder, bool context, Span<std::uint8_t> classes) {
    ClassModel model(context);
    unsigned highest = 0;
    for (std::uint8_t& line_class : classes) {
        const unsigned found = model.walk([&](BitModel& bit) { return take_bit(coder, bit); });
        highest = std::max(highest, found);
        line_class = static_cast<std::uint8_t>(found);
        if (coder.overrun()) {
            break;
        }
    }
    return highest;
}

/// Reads symbols until one is a position; `passes` says that there is one, and in which column of the place's row.
template <typename Columns>
class PositionReader {
  public:
    PositionReader(RangeDecoder& coder, const Rows& rows, const Columns& columns)
        : coder_(coder), rows_(rows), columns_(columns) {
        place_.rate = rows.rate(0);
        look_ahead();
    }

    /// False where the code is wrong.
    bool next(std::uint64_t& row, std::uint64_t& column) {
        std::uint64_t left = 0;
        if (!refresh(left)) {
            return false;
        }
        const std::uint64_t tail = survival(kReach >> kFine);
        for (;;) {
            const std::uint64_t row_end = place_.passed + times(place_.rate, columns_.end() - place_.at);
            if (left > tail && row_end > (near_hazard(left) + kNear) << kFine) {
                break;
            }
            if (row_end < kReach) {
                if (left > survival(row_end >> kFine)) {
                    break;
                }
                if (!place_.next_row(rows_, row_end)) {
                    return false;
                }
                look_ahead();
                continue;
            }
            if (left > tail) {
                break;
            }
            const std::uint64_t far = place_.out_of_reach(columns_);
            const std::uint64_t rest = survival(place_.hazard_to(columns_, far) >> kFine);
            if (left > rest) {
                break;
            }
            coder_.take(kTotal - rest, rest);
            place_.go_to(columns_, far);
            if (coder_.overrun() || !refresh(left)) {
                return false;
            }
        }
        row = place_.row;
        column = take_column(left);
        return true;
    }

  private:
    /// Columns of weight 1 to a coarse part of an octave, in 2**-32.
    void look_ahead() { per_hazard_ = place_.rate == 0 ? 0 : (std::uint64_t{1} << (32 + kFine)) / place_.rate; }

    /// The share that is left from the next symbol on.
    bool refresh(std::uint64_t& left) {
        const std::uint64_t value = coder_.value();
        left = kTotal - value;
        return value < kTotal;
    }

    /// For columns about as near as those within reach.
    std::uint64_t survival_to(std::uint64_t column) const {
        return survival((place_.passed + place_.rate * (columns_.at(column) - place_.at)) >> kFine);
    }

    /// The column that `left` lies in, which is in this row and starts within reach.
    std::uint64_t take_column(std::uint64_t left) {
        const std::uint64_t hazard = std::min(near_hazard(left), kReach >> kFine);
        const std::uint64_t passed = place_.passed >> kFine;
        const std::uint64_t distance = (hazard > passed ? hazard - passed : 0) * per_hazard_ >> 32;
        const std::uint64_t room = columns_.end() - 1 - place_.at;
        std::uint64_t column = columns_.find(place_.at + std::min(distance, room));
        std::uint64_t start = survival_to(column);
        while (start < left) {
            column = columns_.find(columns_.at(column) - 1);
            start = survival_to(column);
        }
        std::uint64_t end = survival_to(column + 1);
        while (end >= left) {
            column = columns_.find(columns_.at(column + 1));
            start = end;
            end = survival_to(column + 1);
        }
        coder_.take(kTotal - start, start - end);
        place_.go_to(columns_, column + 1);
        return column;
    }

    RangeDecoder& coder_;
    const Rows& rows_;
    const Columns& columns_;
    Place place_;
    std::uint64_t per_hazard_ = 0;
};

template <typename P, typename Columns>
Status take_positions(RangeDecoder& coder, const Rows& rows, const Columns& columns, std::uint64_t width,
                      Span<P> positions) {
    PositionReader<Columns> reader(coder, rows, columns);
    for (std::size_t i = 0; i < positions.size; ++i) {
        std::uint64_t row = 0;
        std::uint64_t column = 0;
        if (!reader.next(row, column) || coder.overrun()) {
            return failure(Fault::corrupt, kWhere, "the code has no position {} of {} inside the matrix", i,
                           positions.size);
        }
        positions[i] = static_cast<P>(row * width + column);
    }
    if (!coder.ends_here()) {
        return failure(Fault::corrupt, kWhere, "{} positions do not end where the code does", positions.size);
    }
    return {};
}

}  // namespace

Status matrix_check(Bytes payload, std::uint64_t kept, std::uint64_t rows, std::uint64_t columns, Room& room) {
    Head head;
    const Status status = read_head(payload, kept, rows, columns, head);
    if (status.ok() && head.form != kPlain && head.form != kEven) {
        room.row_classes = head.row_group == rows ? 0 : (rows - 1) / head.row_group + 1;
        const bool weighted = head.column_group != columns;
        room.column_classes = weighted ? (columns - 1) / head.column_group + 1 : 0;
        room.sums = weighted ? columns + 1 : 0;
        room.starts = weighted ? starts_room(columns) : 0;
    }
    return status;
}

template <typename P>
Status matrix_decode(Bytes payload, std::uint64_t rows, std::uint64_t columns, Scratch scratch, Span<P> positions) {
    Head head;
    const Status status = read_head(payload, positions.size, rows, columns, head);
    if (!status.ok()) {
        return status;
    }
    if (head.form == kPlain) {
        return rice_decode(head.code, rows * columns, positions);
    }
    RangeDecoder coder(head.code);
    if (head.form == kEven) {
        if (take_even(coder, rows * columns, positions)) {
            return {};
        }
        return failure(Fault::corrupt, kWhere, "{} even positions do not end where the code does", positions.size);
    }
    const unsigned contexts = head.form - kModel;
    unsigned row_class = 1;
    unsigned column_class = 1;
    if (head.row_group != rows) {
        row_class = take_classes(coder, (contexts & kRowContext) != 0, scratch.row_classes);
    }
    if (head.column_group != columns) {
        column_class = take_classes(coder, (contexts & kColumnContext) != 0, scratch.column_classes);
    }
    if (coder.overrun()) {
        return failure(Fault::corrupt, kWhere, "the code ends within the classes");
    }
    if (row_class == 0 || column_class == 0 ||
        head.scale > kSteepest / (weight_of(row_class) * weight_of(column_class))) {
        return failure(Fault::corrupt, kWhere, "scale {} is not for classes {} and {}", head.scale, row_class,
                       column_class);
    }
    const Rows rates{scratch.row_classes, head.row_group, rows, head.scale};
    if (head.column_group == columns) {
        return take_positions(coder, rates, UniformColumns{columns}, columns, positions);
    }
    const WeightedColumns weighted(scratch.column_classes, head.column_group, columns, scratch);
    return take_positions(coder, rates, weighted, columns, positions);
}

template Status matrix_decode(Bytes, std::uint64_t, std::uint64_t, Scratch, Span<std::uint32_t>);
template Status matrix_decode(Bytes, std::uint64_t, std::uint64_t, Scratch, Span<std::uint64_t>);

}  // namespace deepreduce
