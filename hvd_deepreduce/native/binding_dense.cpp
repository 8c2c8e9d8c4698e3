#include <algorithm>

#include "binding.hpp"
#include "binding_results.hpp"
#include "dense.hpp"
#include "select.hpp"

namespace deepreduce::binding {
namespace {

bool all_finite(const py::object& values) {
    return with_values(values, "values", [](const py::array& array, auto value) {
        const auto span = view<decltype(value)>(array);
        return run([=] { return deepreduce::all_finite(span); });
    });
}

bool compensate(const py::object& residual, const py::object& gradient) {
    return with_values(residual, "residual", [&](const py::array& array, auto value) {
        using V = decltype(value);
        const py::array terms = to_array_of<V>(gradient, "gradient");
        require_size(terms, "gradient", array, "residual");
        const auto sums = writeable<V>(array, "residual");
        return run([=, added = view<V>(terms)] { return deepreduce::compensate(sums, added); });
    });
}

/// Calls a kernel that writes to dense at positions.
template <typename Kernel>
void update_at(const py::object& dense, const py::object& positions, const py::object& values, Kernel kernel) {
    with_values(dense, "dense", [&](const py::array& array, auto value) {
        using V = decltype(value);
        const auto target = writeable<V>(array, "dense");
        const py::array terms = to_array_of<V>(values, "values");
        with_positions(positions, target.size, [&](auto places) {
            require_size(terms, "values", to_array(positions, "positions"), "positions");
            require_ok(run([=, added = view<V>(terms)] { return kernel(target, places, added); }));
        });
    });
}

void subtract_at(const py::object& dense, const py::object& positions, const py::object& values) {
    update_at(dense, positions, values,
              [](auto target, auto places, auto terms) { return deepreduce::subtract_at(target, places, terms); });
}

void scatter_add(const py::object& dense, const py::object& positions, const py::object& values, double factor) {
    update_at(dense, positions, values, [=](auto target, auto places, auto terms) {
        return deepreduce::scatter_add(target, places, terms, factor);
    });
}

py::array gather(const py::object& dense, const py::object& positions) {
    return with_values(dense, "dense", [&](const py::array& array, auto value) -> py::array {
        using V = decltype(value);
        const auto source = view<V>(array);
        return with_positions(positions, source.size, [&](auto places) -> py::array {
            py::array_t<V> values(static_cast<py::ssize_t>(places.size));
            require_ok(run([=, out = fill(values)] { return deepreduce::gather(source, places, out); }));
            return values;
        });
    });
}

py::array select_topk(const py::object& values, const py::object& kept) {
    return with_values(values, "values", [&](const py::array& array, auto value) -> py::array {
        using V = decltype(value);
        const auto source = view<V>(array);
        const std::uint64_t count = to_integer(kept, "kept", 0, source.size);
        return with_position_dtype(source.size, [&](auto position) -> py::array {
            using P = decltype(position);
            std::vector<P> positions(count);
            const std::size_t room = topk_scratch(source.size, count);
            const auto places = scratch<P>(room);
            const auto sizes = scratch<Bits<V>>(room);
            std::size_t found = 0;
            run([&] {
                deepreduce::select_topk(Compensated<V>(source), Span<P>{positions.data(), positions.size()},
                                        Span<P>{places.get(), room}, Span<Bits<V>>{sizes.get(), room}, found);
            });
            return py::array_t<P>(static_cast<py::ssize_t>(found), positions.data());
        });
    });
}

py::array select_above(const py::object& values, double threshold) {
    return with_values(values, "values", [&](const py::array& array, auto value) -> py::array {
        using V = decltype(value);
        const auto source = view<V>(array);
        return with_position_dtype(source.size, [&](auto position) -> py::array {
            using P = decltype(position);
            std::vector<P> found;
            std::size_t count = 0;
            run([&] { deepreduce::select_above(Compensated<V>(source), threshold, found, count); });
            return py::array_t<P>(static_cast<py::ssize_t>(count), found.data());
        });
    });
}

py::array sample_positions(const py::object& numel_given, const py::object& count_given) {
    const std::uint64_t numel = to_numel(numel_given);
    const std::uint64_t count = to_integer(count_given, "count", 0, numel);
    return with_position_dtype(numel, [&](auto position) -> py::array {
        using P = decltype(position);
        py::array_t<P> positions(static_cast<py::ssize_t>(count));
        run([=, out = fill(positions)] {
            for (std::size_t i = 0; i < out.size; ++i) {
                out[i] = static_cast<P>(sample_position(numel, count, i));
            }
        });
        return positions;
    });
}

double sampled_threshold(const py::object& sample, const py::object& above) {
    return with_values(sample, "sample", [&](const py::array& array, auto value) {
        using V = decltype(value);
        const auto source = view<V>(array);
        const std::uint64_t larger = to_integer(above, "above", 0, ~std::uint64_t{0});
        const auto bits = scratch<Bits<V>>(source.size);
        return run([&] {
            std::transform(source.begin(), source.end(), bits.get(), [](V element) { return magnitude(element); });
            return static_cast<double>(
                deepreduce::sampled_threshold<V>(Span<Bits<V>>{bits.get(), source.size}, larger));
        });
    });
}

}  // namespace

void bind_dense(py::module_& module) {
    module.def("all_finite", &all_finite, py::arg("values"));
    module.def("compensate", &compensate, py::arg("residual"), py::arg("gradient"));
    module.def("subtract_at", &subtract_at, py::arg("dense"), py::arg("positions"), py::arg("values"));
    module.def("gather", &gather, py::arg("dense"), py::arg("positions"));
    module.def("scatter_add", &scatter_add, py::arg("dense"), py::arg("positions"), py::arg("values"),
               py::arg("factor"));
    module.def("select_topk", &select_topk, py::arg("values"), py::arg("kept"));
    module.def("sample_positions", &sample_positions, py::arg("numel"), py::arg("count"));
    module.def("sampled_threshold", &sampled_threshold, py::arg("sample"), py::arg("above"));
    module.def("select_above", &select_above, py::arg("values"), py::arg("threshold"));
}

}  // namespace deepreduce::binding
