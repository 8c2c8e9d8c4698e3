// Index codec `matrix`: FORMAT.md, 4.10.
#include "matrix.hpp"

#include "index_decoder.hpp"

namespace deepreduce::fuzz {
namespace {

using matrix::Room;

/// Scratch space of the exact size, filled with what nobody should read.
class Space {
  public:
    explicit Space(const Room& room)
        : row_classes_(room.row_classes),
          column_classes_(room.column_classes),
          counts_(room.counts),
          sums_(room.sums),
          starts_(room.starts) {}

    matrix::Scratch spans() {
        return {row_classes_.span(), column_classes_.span(), counts_.span(), sums_.span(), starts_.span()};
    }

  private:
    Exact<std::uint8_t> row_classes_;
    Exact<std::uint8_t> column_classes_;
    Exact<std::uint64_t> counts_;
    Exact<std::uint32_t> sums_;
    Exact<std::uint32_t> starts_;
};

/// A view that a mutation of numel changes.
std::uint64_t rows_of(std::uint64_t numel) {
    for (const std::uint64_t rows : {60, 56, 6, 3, 2}) {
        if (numel % rows == 0) {
            return rows;
        }
    }
    return 1;
}

struct Matrix {
    /// An encoder may choose any classes and scale.
    static constexpr bool kCanonical = false;
    /// An even code of a byte may stand for all cells there are.
    static constexpr std::uint64_t kDensest = 0;

    static void fit(Bytes payload, std::uint64_t, std::uint64_t& kept) { kept %= payload.size * 8 + 1; }

    static Status check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
        Room room;
        return matrix_check(payload, kept, rows_of(numel), numel / rows_of(numel), room);
    }

    template <typename P>
    static Status decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
        const std::uint64_t rows = rows_of(numel);
        Room room;
        const Status status = matrix_check(payload, positions.size, rows, numel / rows, room);
        if (!status.ok()) {
            return status;
        }
        Space space(room);
        return matrix_decode(payload, rows, numel / rows, space.spans(), positions);
    }

    template <typename P>
    static Exact<std::uint8_t> encode(Span<const P> positions, std::uint64_t numel) {
        const std::uint64_t rows = rows_of(numel);
        Space space(matrix_encode_room(positions.size, rows, numel / rows));
        Exact<std::uint8_t> buffer(matrix_capacity(positions.size, numel));
        std::uint64_t size = 0;
        require(matrix_encode(positions, rows, numel / rows, space.spans(), buffer.span(), size).ok(),
                "a support can be encoded");
        require(size <= buffer.size(), "a payload fits the capacity");
        Exact<std::uint8_t> payload(size);
        std::copy_n(buffer.view().begin(), size, payload.span().begin());
        return payload;
    }
};

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::test_index_decoder<deepreduce::fuzz::Matrix>({data, size});
    return 0;
}
