#include <algorithm>

#include "binding.hpp"
#include "binding_values.hpp"
#include "fit.hpp"
#include "sketch.hpp"

namespace deepreduce::binding {
namespace {

void require_sortable(std::size_t kept) {
    if (kept > kMostSorted) {
        refuse("values: " + std::to_string(kept) + "; at most " + std::to_string(kMostSorted) + " can be sorted");
    }
}

/// What sorting takes.
template <typename V>
struct SortSpace {
    std::unique_ptr<Ranked<V>[]> buffers;
    Span<Ranked<V>> first;
    Span<Ranked<V>> second;

    explicit SortSpace(std::size_t kept)
        : buffers(scratch<Ranked<V>>(2 * kept)), first{buffers.get(), kept}, second{buffers.get() + kept, kept} {}
};

py::bytes to_bytes(Span<const std::uint8_t> data) {
    return py::bytes(reinterpret_cast<const char*>(data.data), data.size);
}

/// The payload and the order of the values in it; with `permuted` the order is in the payload, and None beside it.
template <typename Curve>
py::tuple encode_curves(const Curve& curve, const py::object& values, bool permuted) {
    return with_values(values, "values", [&](const py::array& array, auto value) {
        using V = decltype(value);
        const auto source = view<V>(array);
        require_sortable(source.size);
        const std::size_t room = static_cast<std::size_t>(fit_capacity(curve, source.size, sizeof(V)) +
                                                          (permuted ? permutation_size(source.size) : 0));
        const auto buffer = scratch<std::uint8_t>(room);
        const Span<std::uint8_t> out{buffer.get(), room};
        const SortSpace<V> space(source.size);
        py::array_t<std::uint32_t> order(static_cast<py::ssize_t>(permuted ? 0 : source.size));
        const std::size_t size = run([&, places = fill(order)] {
            const bool finite = are_finite(source);
            if (!finite) {
                fit_encode_not_finite(out);
                for (std::size_t i = 0; i < places.size; ++i) {
                    places[i] = static_cast<std::uint32_t>(i);
                }
                return kNotFiniteSize;
            }
            const auto sorted = sort_falling(source, space.first, space.second);
            const auto heights = scratch<double>(source.size);
            const std::size_t curves = fit_encode(curve, sorted, {heights.get(), source.size}, out);
            for (std::size_t i = 0; i < places.size; ++i) {
                places[i] = sorted[i].place;
            }
            if (!permuted) {
                return curves;
            }
            const auto packed = static_cast<std::size_t>(permutation_size(source.size));
            pack_places(sorted, out.part(curves, packed));
            return curves + packed;
        });
        return py::make_tuple(to_bytes(out.part(0, size)), permuted ? py::object(py::none()) : py::object(order));
    });
}

template <typename Curve>
py::array decode_curves(const Curve& curve, const py::object& payload, const py::object& kept, const py::object& dtype,
                        bool permuted) {
    const Payload data(payload);
    const Bytes bytes = data.bytes();
    const std::uint64_t count = to_kept(kept);
    return with_value_dtype(dtype, "dtype", [&](auto value) -> py::array {
        using V = decltype(value);
        Bytes packed;
        require_ok(fit_check<V>(curve, bytes, count, permuted, packed));
        py::array_t<V> values(static_cast<py::ssize_t>(count));
        const Span<V> out = fill(values);
        require_ok(run([&] {
            if (!permuted || fit_is_not_finite(bytes)) {
                fit_decode(curve, bytes, out);
                return Status{};
            }
            const auto room = scratch<V>(out.size);
            const Span<V> sorted{room.get(), out.size};
            fit_decode(curve, bytes, sorted);
            const std::size_t words = out.size / 64 + 1;
            const auto seen = scratch<std::uint64_t>(words);
            std::fill_n(seen.get(), words, std::uint64_t{0});
            return unpack_values(Curve::kWhere, packed, Span<const V>(sorted), {seen.get(), words}, out);
        }));
        return values;
    });
}

Polynomial to_polynomial(const py::object& degree, const py::object& segments) {
    return {static_cast<unsigned>(to_integer(degree, "degree", 1, kMostDegree)),
            static_cast<unsigned>(to_integer(segments, "segments", 0, kMostSegments))};
}

py::tuple fit_poly_encode(const py::object& values, const py::object& degree, const py::object& segments,
                          bool permuted) {
    return encode_curves(to_polynomial(degree, segments), values, permuted);
}

py::array fit_poly_decode(const py::object& payload, const py::object& kept, const py::object& degree,
                          const py::object& dtype, bool permuted) {
    return decode_curves(to_polynomial(degree, py::int_(0)), payload, kept, dtype, permuted);
}

py::tuple fit_dexp_encode(const py::object& values, bool permuted) {
    return encode_curves(DoubleExponential{}, values, permuted);
}

py::array fit_dexp_decode(const py::object& payload, const py::object& kept, const py::object& dtype, bool permuted) {
    return decode_curves(DoubleExponential{}, payload, kept, dtype, permuted);
}

py::bytes sketch_encode(const py::object& values, const py::object& quantiles, bool squares) {
    const auto most = static_cast<unsigned>(to_integer(quantiles, "quantiles", 2, kMostQuantiles));
    return with_values(values, "values", [&](const py::array& array, auto value) {
        using V = decltype(value);
        const auto source = view<V>(array);
        require_sortable(source.size);
        const auto room = static_cast<std::size_t>(sketch_capacity(source.size, most, sizeof(V)));
        const auto buffer = scratch<std::uint8_t>(room);
        const Span<std::uint8_t> out{buffer.get(), room};
        const SortSpace<V> space(source.size);
        const auto numbers = scratch<std::uint8_t>(source.size);
        const std::size_t size = run([&] {
            return deepreduce::sketch_encode(source, most, squares, space.first, space.second,
                                             {numbers.get(), source.size}, out);
        });
        return to_bytes(out.part(0, size));
    });
}

py::array sketch_decode(const py::object& payload, const py::object& kept, const py::object& dtype) {
    return decode(
        payload, kept, dtype,
        [](Bytes in, std::uint64_t count, auto value) { return sketch_check<decltype(value)>(in, count); },
        [](Bytes in, auto out) { return deepreduce::sketch_decode(in, out); });
}

}  // namespace

void bind_curves(py::module_& module) {
    module.def("fit_poly_encode", &fit_poly_encode, py::arg("values"), py::arg("degree"), py::arg("segments"),
               py::arg("permuted"));
    module.def("fit_poly_decode", &fit_poly_decode, py::arg("payload"), py::arg("kept"), py::arg("degree"),
               py::arg("dtype"), py::arg("permuted"));
    module.def("fit_dexp_encode", &fit_dexp_encode, py::arg("values"), py::arg("permuted"));
    module.def("fit_dexp_decode", &fit_dexp_decode, py::arg("payload"), py::arg("kept"), py::arg("dtype"),
               py::arg("permuted"));
    module.def("sketch_encode", &sketch_encode, py::arg("values"), py::arg("quantiles"), py::arg("squares"));
    module.def("sketch_decode", &sketch_decode, py::arg("payload"), py::arg("kept"), py::arg("dtype"));
}

}  // namespace deepreduce::binding
