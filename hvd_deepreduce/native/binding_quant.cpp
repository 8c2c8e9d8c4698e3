#include <algorithm>

#include "binding.hpp"
#include "binding_results.hpp"
#include "quant.hpp"

namespace deepreduce::binding {
namespace {

/// The matrix that values belong to; positions stay unread until they are needed.
struct Matrix {
    std::uint64_t rows;
    std::uint64_t columns;

    Matrix(const py::object& rows_object, const py::object& columns_object)
        : rows(to_integer(rows_object, "rows", 0, kMaxNumel)),
          columns(to_integer(columns_object, "columns", 0, rows == 0 ? kMaxNumel : kMaxNumel / rows)) {}
};

/// Calls `use` with where the values belong, `agreed` columns of it zeroed.
template <typename Use>
auto with_places(const py::object& positions, const Matrix& matrix, std::uint64_t count, std::uint64_t agreed,
                 Use use) {
    if (agreed == 0) {
        return use(QuantPlaces<std::uint32_t>{});
    }
    return with_positions(positions, matrix.rows * matrix.columns, [&](auto places) {
        if (places.size != count) {
            refuse("positions: " + std::to_string(places.size) + " for " + std::to_string(count) + " values");
        }
        const auto columns = scratch<std::int8_t>(agreed);
        std::fill_n(columns.get(), agreed, std::int8_t{0});
        return use(QuantPlaces<std::remove_const_t<std::remove_pointer_t<decltype(places.data)>>>{
            places, {columns.get(), static_cast<std::size_t>(agreed)}});
    });
}

QuantSettings to_settings(double error, bool unbiased, const py::object& key) {
    if (!(error >= 0.001 && error <= 0.5)) {
        refuse("error: " + std::to_string(error) + "; allowed is 0.001 to 0.5");
    }
    return {error, unbiased, to_key(key)};
}

py::bytes quant_encode(const py::object& values, const py::object& positions, const py::object& rows,
                       const py::object& columns, double error, bool unbiased, const py::object& key) {
    const Matrix matrix(rows, columns);
    const QuantSettings settings = to_settings(error, unbiased, key);
    return with_values(values, "values", [&](const py::array& array, auto value) {
        const auto source = view<decltype(value)>(array);
        const std::uint64_t agreed = quant_agreed_size(source.size, matrix.rows, matrix.columns);
        return with_places(positions, matrix, source.size, agreed, [&](const auto& places) {
            const std::size_t room = quant_capacity(source.size, sizeof value);
            const auto buffer = scratch<std::uint8_t>(room);
            const std::size_t size = run([&, out = Span<std::uint8_t>{buffer.get(), room}] {
                return deepreduce::quant_encode(source, places, settings, out);
            });
            return py::bytes(reinterpret_cast<const char*>(buffer.get()), size);
        });
    });
}

py::array quant_decode(const py::object& payload, const py::object& kept, const py::object& positions,
                       const py::object& rows, const py::object& columns, bool unbiased, const py::object& key,
                       const py::object& dtype) {
    const Payload data(payload);
    const Bytes bytes = data.bytes();
    const std::uint64_t count = to_kept(kept);
    const Matrix matrix(rows, columns);
    const QuantSettings settings{0, unbiased, to_key(key)};
    return with_value_dtype(dtype, "dtype", [&](auto value) -> py::array {
        using V = decltype(value);
        std::uint64_t agreed = 0;
        require_ok(quant_check<V>(bytes, count, matrix.rows, matrix.columns, agreed));
        return with_places(positions, matrix, count, agreed, [&](const auto& places) {
            py::array_t<V> values(static_cast<py::ssize_t>(count));
            require_ok(run([&, out = fill(values)] { return deepreduce::quant_decode(bytes, places, settings, out); }));
            return values;
        });
    });
}

}  // namespace

void bind_quant(py::module_& module) {
    module.def("quant_encode", &quant_encode, py::arg("values"), py::arg("positions"), py::arg("rows"),
               py::arg("columns"), py::arg("error"), py::arg("unbiased"), py::arg("key"));
    module.def("quant_decode", &quant_decode, py::arg("payload"), py::arg("kept"), py::arg("positions"),
               py::arg("rows"), py::arg("columns"), py::arg("unbiased"), py::arg("key"), py::arg("dtype"));
}

}  // namespace deepreduce::binding
