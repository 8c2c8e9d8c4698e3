#include "binding.hpp"
#include "binding_results.hpp"
#include "bitmap.hpp"
#include "delta.hpp"
#include "huffman_bytes.hpp"
#include "huffman_gaps.hpp"
#include "matrix.hpp"
#include "positions.hpp"
#include "rice.hpp"
#include "rle.hpp"

namespace deepreduce::binding {
namespace {

void check_positions(const py::object& positions, const py::object& numel) {
    const std::uint64_t limit = to_numel(numel);
    with_positions(positions, limit,
                   [=](auto places) { require_ok(run([=] { return deepreduce::check_positions(places, limit); })); });
}

/// What a kernel writes that sets the length of the payload, counted in units of 1/`per_byte` of a byte.
template <typename Capacity, typename Kernel>
py::bytes encode(const py::object& positions, const py::object& numel, std::uint64_t per_byte, Capacity capacity,
                 Kernel kernel) {
    const std::uint64_t limit = to_numel(numel);
    return with_positions(positions, limit, [=](auto places) {
        const std::size_t room = capacity(places.size, limit);
        const auto buffer = scratch<std::uint8_t>(room);
        std::uint64_t length = 0;
        require_ok(
            run([&, out = Span<std::uint8_t>{buffer.get(), room}] { return kernel(places, limit, out, length); }));
        return py::bytes(reinterpret_cast<const char*>(buffer.get()), (length + per_byte - 1) / per_byte);
    });
}

/// New positions, filled by a decoder once `check` has passed the payload and the number kept.
template <typename Check, typename Kernel>
py::array decode(const py::object& payload, const py::object& kept, const py::object& numel, Check check,
                 Kernel kernel) {
    const Payload data(payload);
    const Bytes bytes = data.bytes();
    const std::uint64_t count = to_kept(kept);
    const std::uint64_t limit = to_numel(numel);
    require_ok(check(bytes, count, limit));
    return with_position_dtype(limit, [&](auto position) -> py::array {
        py::array_t<decltype(position)> positions(static_cast<py::ssize_t>(count));
        require_ok(run([=, out = fill(positions)] { return kernel(bytes, limit, out); }));
        return positions;
    });
}

py::array raw_positions_decode(const py::object& payload, const py::object& kept, const py::object& numel) {
    return decode(payload, kept, numel, raw_positions_check, [](Bytes in, std::uint64_t limit, auto out) {
        return deepreduce::raw_positions_decode(in, limit, out);
    });
}

py::bytes bitmap_encode(const py::object& positions, const py::object& numel) {
    const std::uint64_t limit = to_numel(numel);
    return with_positions(positions, limit, [=](auto places) {
        Span<std::uint8_t> out;
        py::bytes bytes = new_bytes(bitmap_size(limit), out);
        require_ok(run([=] { return deepreduce::bitmap_encode(places, limit, out); }));
        return bytes;
    });
}

py::array bitmap_decode(const py::object& payload, const py::object& kept, const py::object& numel) {
    return decode(payload, kept, numel, bitmap_check,
                  [](Bytes in, std::uint64_t limit, auto out) { return deepreduce::bitmap_decode(in, limit, out); });
}

py::bytes rice_encode(const py::object& positions, const py::object& numel) {
    return encode(positions, numel, 8, rice_capacity, [](auto places, std::uint64_t limit, auto out, auto& bits) {
        return deepreduce::rice_encode(places, limit, out, bits);
    });
}

std::uint64_t rice_bits(const py::object& positions, const py::object& numel) {
    const std::uint64_t limit = to_numel(numel);
    return with_positions(positions, limit, [=](auto places) {
        std::uint64_t bits = 0;
        require_ok(run([&] { return deepreduce::rice_encode(places, limit, Span<std::uint8_t>{}, bits); }));
        return bits;
    });
}

py::array rice_decode(const py::object& payload, const py::object& kept, const py::object& numel) {
    return decode(payload, kept, numel, rice_check,
                  [](Bytes in, std::uint64_t limit, auto out) { return deepreduce::rice_decode(in, limit, out); });
}

py::bytes delta_encode(const py::object& positions, const py::object& numel) {
    return encode(positions, numel, 1, delta_capacity, [](auto places, std::uint64_t limit, auto out, auto& size) {
        return deepreduce::delta_encode(places, limit, out, size);
    });
}

py::array delta_decode(const py::object& payload, const py::object& kept, const py::object& numel) {
    return decode(payload, kept, numel, delta_check,
                  [](Bytes in, std::uint64_t limit, auto out) { return deepreduce::delta_decode(in, limit, out); });
}

py::bytes rle_encode(const py::object& positions, const py::object& numel) {
    return encode(positions, numel, 1, rle_capacity, [](auto places, std::uint64_t limit, auto out, auto& size) {
        return deepreduce::rle_encode(places, limit, out, size);
    });
}

py::array rle_decode(const py::object& payload, const py::object& kept, const py::object& numel) {
    return decode(payload, kept, numel, rle_check,
                  [](Bytes in, std::uint64_t limit, auto out) { return deepreduce::rle_decode(in, limit, out); });
}

py::bytes huffman_bytes_encode(const py::object& positions, const py::object& numel) {
    return encode(positions, numel, 8, huffman_bytes_capacity,
                  [](auto places, std::uint64_t limit, auto out, auto& bits) {
                      return deepreduce::huffman_bytes_encode(places, limit, out, bits);
                  });
}

py::array huffman_bytes_decode(const py::object& payload, const py::object& kept, const py::object& numel) {
    return decode(payload, kept, numel, huffman_bytes_check, [](Bytes in, std::uint64_t limit, auto out) {
        return deepreduce::huffman_bytes_decode(in, limit, out);
    });
}

py::bytes huffman_gaps_encode(const py::object& positions, const py::object& numel) {
    return encode(positions, numel, 8, huffman_gaps_capacity,
                  [](auto places, std::uint64_t limit, auto out, auto& bits) {
                      return deepreduce::huffman_gaps_encode(places, limit, out, bits);
                  });
}

py::array huffman_gaps_decode(const py::object& payload, const py::object& kept, const py::object& numel) {
    return decode(payload, kept, numel, huffman_gaps_check, [](Bytes in, std::uint64_t limit, auto out) {
        return deepreduce::huffman_gaps_decode(in, limit, out);
    });
}

/// The scratch space of the matrix codec; of what size is known once the support, or the head of a payload, is.
class MatrixSpace {
  public:
    explicit MatrixSpace(const matrix::Room& room)
        : room_(room),
          classes_(scratch<std::uint8_t>(room.row_classes + room.column_classes)),
          counts_(scratch<std::uint64_t>(room.counts)),
          sums_(scratch<std::uint32_t>(room.sums + room.starts)) {}

    matrix::Scratch spans() const {
        return {{classes_.get(), room_.row_classes},
                {classes_.get() + room_.row_classes, room_.column_classes},
                {counts_.get(), room_.counts},
                {sums_.get(), room_.sums},
                {sums_.get() + room_.sums, room_.starts}};
    }

  private:
    matrix::Room room_;
    std::unique_ptr<std::uint8_t[]> classes_;
    std::unique_ptr<std::uint64_t[]> counts_;
    std::unique_ptr<std::uint32_t[]> sums_;
};

std::pair<std::uint64_t, std::uint64_t> to_view(const py::object& rows, const py::object& columns) {
    const std::uint64_t height = to_integer(rows, "rows", 0, kMaxNumel);
    return {height, to_integer(columns, "columns", 0, kMaxNumel / std::max<std::uint64_t>(1, height))};
}

py::bytes matrix_encode(const py::object& positions, const py::object& rows, const py::object& columns) {
    const auto [height, width] = to_view(rows, columns);
    return with_positions(positions, height * width, [height = height, width = width](auto places) {
        const std::uint64_t room = matrix_capacity(places.size, height * width);
        const auto buffer = scratch<std::uint8_t>(room);
        const MatrixSpace space(matrix_encode_room(places.size, height, width));
        std::uint64_t size = 0;
        require_ok(run([&] {
            return deepreduce::matrix_encode(places, height, width, space.spans(), {buffer.get(), room}, size);
        }));
        return py::bytes(reinterpret_cast<const char*>(buffer.get()), size);
    });
}

py::array matrix_decode(const py::object& payload, const py::object& kept, const py::object& rows,
                        const py::object& columns) {
    const auto [height, width] = to_view(rows, columns);
    matrix::Room room;
    const auto check = [&, height = height, width = width](Bytes bytes, std::uint64_t count, std::uint64_t) {
        return matrix_check(bytes, count, height, width, room);
    };
    return decode(payload, kept, py::int_(height * width), check,
                  [&room, height = height, width = width](Bytes in, std::uint64_t, auto out) {
                      const MatrixSpace space(room);
                      return deepreduce::matrix_decode(in, height, width, space.spans(), out);
                  });
}

}  // namespace

void bind_index_codecs(py::module_& module) {
    module.def("check_positions", &check_positions, py::arg("positions"), py::arg("numel"));
    module.def("raw_positions_decode", &raw_positions_decode, py::arg("payload"), py::arg("kept"), py::arg("numel"));
    module.def("bitmap_encode", &bitmap_encode, py::arg("positions"), py::arg("numel"));
    module.def("bitmap_decode", &bitmap_decode, py::arg("payload"), py::arg("kept"), py::arg("numel"));
    module.def("rice_encode", &rice_encode, py::arg("positions"), py::arg("numel"));
    module.def("rice_decode", &rice_decode, py::arg("payload"), py::arg("kept"), py::arg("numel"));
    module.def("rice_bits", &rice_bits, py::arg("positions"), py::arg("numel"));
    module.def("delta_encode", &delta_encode, py::arg("positions"), py::arg("numel"));
    module.def("delta_decode", &delta_decode, py::arg("payload"), py::arg("kept"), py::arg("numel"));
    module.def("rle_encode", &rle_encode, py::arg("positions"), py::arg("numel"));
    module.def("rle_decode", &rle_decode, py::arg("payload"), py::arg("kept"), py::arg("numel"));
    module.def("huffman_bytes_encode", &huffman_bytes_encode, py::arg("positions"), py::arg("numel"));
    module.def("huffman_bytes_decode", &huffman_bytes_decode, py::arg("payload"), py::arg("kept"), py::arg("numel"));
    module.def("huffman_gaps_encode", &huffman_gaps_encode, py::arg("positions"), py::arg("numel"));
    module.def("huffman_gaps_decode", &huffman_gaps_decode, py::arg("payload"), py::arg("kept"), py::arg("numel"));
    module.def("matrix_encode", &matrix_encode, py::arg("positions"), py::arg("rows"), py::arg("columns"));
    module.def("matrix_decode", &matrix_decode, py::arg("payload"), py::arg("kept"), py::arg("rows"),
               py::arg("columns"));
}

}  // namespace deepreduce::binding
