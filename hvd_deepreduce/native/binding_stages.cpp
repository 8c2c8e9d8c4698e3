#include "binding.hpp"
#include "binding_results.hpp"
#include "momentum.hpp"
#include "random_support.hpp"

namespace deepreduce::binding {
namespace {

/// Calls a kernel that writes to two arrays of a gradient's size.
template <typename Kernel>
bool update_both(const py::object& first, const char* name, const py::object& residual, const py::object& gradient,
                 Kernel kernel) {
    return with_values(gradient, "gradient", [&](const py::array& array, auto value) {
        using V = decltype(value);
        const py::array other = to_array_of<V>(first, name);
        const py::array sums = to_array_of<V>(residual, "residual");
        require_size(other, name, array, "gradient");
        require_size(sums, "residual", array, "gradient");
        const auto written = writeable<V>(other, name);
        const auto kept = writeable<V>(sums, "residual");
        return run([=, terms = view<V>(array)] { return kernel(written, kept, terms); });
    });
}

bool add_momentum(const py::object& momentum, const py::object& residual, const py::object& gradient, double factor,
                  double scale) {
    return update_both(momentum, "momentum", residual, gradient, [=](auto first, auto sums, auto terms) {
        using V = std::remove_reference_t<decltype(first[0])>;
        return deepreduce::add_momentum<V>(first, sums, terms, static_cast<V>(factor), static_cast<V>(scale));
    });
}

bool add_squares(const py::object& squares, const py::object& residual, const py::object& gradient) {
    return update_both(squares, "squares", residual, gradient, [](auto first, auto sums, auto terms) {
        using V = std::remove_reference_t<decltype(first[0])>;
        return deepreduce::add_squares<V>(first, sums, terms);
    });
}

double sum_of_squares(const py::object& values) {
    return with_values(values, "values", [](const py::array& array, auto value) {
        return run([span = view<decltype(value)>(array)] { return deepreduce::sum_of_squares(span); });
    });
}

py::tuple exceedance(const py::object& values, double threshold) {
    return with_values(values, "values", [&](const py::array& array, auto value) {
        using V = decltype(value);
        const auto found =
            run([=, span = view<V>(array)] { return deepreduce::exceedance(span, static_cast<V>(threshold)); });
        return py::make_tuple(found.count, found.sum);
    });
}

py::array random_support(const py::object& key_given, const py::object& numel_given, const py::object& kept_given) {
    const std::uint64_t key = to_key(key_given);
    const std::uint64_t numel = to_numel(numel_given);
    const std::uint64_t kept = to_integer(kept_given, "kept", 0, numel);
    return with_position_dtype(numel, [&](auto position) -> py::array {
        using P = decltype(position);
        py::array_t<P> positions(static_cast<py::ssize_t>(kept));
        std::vector<std::uint64_t> marks((numel + 63) / 64);
        run([&, out = fill(positions)] {
            deepreduce::random_support(key, numel, out, Span<std::uint64_t>{marks.data(), marks.size()});
        });
        return positions;
    });
}

}  // namespace

void bind_stages(py::module_& module) {
    module.def("add_momentum", &add_momentum, py::arg("momentum"), py::arg("residual"), py::arg("gradient"),
               py::arg("factor"), py::arg("scale"));
    module.def("add_squares", &add_squares, py::arg("squares"), py::arg("residual"), py::arg("gradient"));
    module.def("sum_of_squares", &sum_of_squares, py::arg("values"));
    module.def("exceedance", &exceedance, py::arg("values"), py::arg("threshold"));
    module.def("random_support", &random_support, py::arg("key"), py::arg("numel"), py::arg("kept"));
}

}  // namespace deepreduce::binding
