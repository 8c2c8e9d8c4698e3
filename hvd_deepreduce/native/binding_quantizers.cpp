#include "binding.hpp"
#include "binding_values.hpp"
#include "centroids.hpp"
#include "natural.hpp"
#include "terngrad.hpp"

namespace deepreduce::binding {
namespace {

CentroidSettings to_centroids(const py::object& mean, const py::object& classes) {
    return {to_integer(mean, "mean", 0, 1) != 0, static_cast<unsigned>(to_integer(classes, "classes", 1, 2))};
}

/// Calls `use` with the groups of so many values: one for each column that holds a position, or one alone for None.
template <typename Use>
auto with_groups(const py::object& positions, const py::object& columns, const py::object& numel, std::size_t kept,
                 Use use) {
    if (positions.is_none()) {
        return use(Groups{{}, 1});
    }
    const std::uint64_t width = to_integer(columns, "columns", 1, kMaxNarrow);
    return with_positions(positions, to_numel(numel), [&](auto places) {
        if (places.size != kept) {
            refuse("positions: " + std::to_string(places.size) + " elements for " + std::to_string(kept) + " values");
        }
        const auto ranks = scratch<std::uint32_t>(width);
        const auto of = scratch<std::uint32_t>(kept);
        const Span<std::uint32_t> groups{of.get(), kept};
        const std::size_t count = run([&] { return group_columns(places, {ranks.get(), width}, groups); });
        return use(Groups{groups, count});
    });
}

py::bytes centroids_encode(const py::object& values, const py::object& positions, const py::object& columns,
                           const py::object& numel, const py::object& mean, const py::object& classes) {
    const CentroidSettings settings = to_centroids(mean, classes);
    const std::size_t kept = static_cast<std::size_t>(to_array(values, "values").size());
    return with_groups(positions, columns, numel, kept, [&](Groups groups) {
        return with_values(values, "values", [&](const py::array& array, auto value) {
            using V = decltype(value);
            const auto tallies = scratch<Tally<V>>(groups.count);
            Span<std::uint8_t> out;
            py::bytes bytes = new_bytes(centroids_size(kept, groups.count, sizeof(V), settings), out);
            run([&] {
                deepreduce::centroids_encode(view<V>(array), groups, settings, {tallies.get(), groups.count}, out);
            });
            return bytes;
        });
    });
}

py::array centroids_decode(const py::object& payload, const py::object& kept, const py::object& positions,
                           const py::object& columns, const py::object& numel, const py::object& mean,
                           const py::object& classes, const py::object& dtype) {
    const CentroidSettings settings = to_centroids(mean, classes);
    return with_groups(positions, columns, numel, to_kept(kept), [&](Groups groups) {
        return decode(
            payload, kept, dtype,
            [&](Bytes in, std::uint64_t count, auto value) {
                return centroids_check(in, count, groups.count, sizeof value, settings);
            },
            [&](Bytes in, auto out) { return deepreduce::centroids_decode(in, groups, settings, out); });
    });
}

py::bytes terngrad_encode(const py::object& values, const py::object& key) {
    const std::uint64_t draws = to_key(key);
    return encode(
        values, [](auto source) { return terngrad_size(source.size, sizeof source[0]); },
        [=](auto source, auto out) { deepreduce::terngrad_encode(source, draws, out); });
}

py::array terngrad_decode(const py::object& payload, const py::object& kept, const py::object& dtype) {
    return decode(
        payload, kept, dtype,
        [](Bytes in, std::uint64_t count, auto value) { return terngrad_check(in, count, sizeof value); },
        [](Bytes in, auto out) { return deepreduce::terngrad_decode(in, out); });
}

py::bytes natural_encode(const py::object& values, const py::object& key) {
    const std::uint64_t draws = to_key(key);
    NaturalRange range{};
    return encode(
        values,
        [&](auto source) {
            range = run([&] { return natural_range(source, draws); });
            return natural_size(source.size, range);
        },
        [&](auto source, auto out) { deepreduce::natural_encode(source, draws, range, out); });
}

py::array natural_decode(const py::object& payload, const py::object& kept, const py::object& dtype) {
    return decode(
        payload, kept, dtype,
        [](Bytes in, std::uint64_t count, auto value) { return natural_check<decltype(value)>(in, count); },
        [](Bytes in, auto out) { return deepreduce::natural_decode(in, out); });
}

}  // namespace

void bind_quantizers(py::module_& module) {
    module.def("centroids_encode", &centroids_encode, py::arg("values"), py::arg("positions"), py::arg("columns"),
               py::arg("numel"), py::arg("mean"), py::arg("classes"));
    module.def("centroids_decode", &centroids_decode, py::arg("payload"), py::arg("kept"), py::arg("positions"),
               py::arg("columns"), py::arg("numel"), py::arg("mean"), py::arg("classes"), py::arg("dtype"));
    module.def("terngrad_encode", &terngrad_encode, py::arg("values"), py::arg("key"));
    module.def("terngrad_decode", &terngrad_decode, py::arg("payload"), py::arg("kept"), py::arg("dtype"));
    module.def("natural_encode", &natural_encode, py::arg("values"), py::arg("key"));
    module.def("natural_decode", &natural_decode, py::arg("payload"), py::arg("kept"), py::arg("dtype"));
}

}  // namespace deepreduce::binding
