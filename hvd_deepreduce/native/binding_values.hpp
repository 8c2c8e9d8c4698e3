// How value codecs are called: values in and new bytes out, bytes in and new values out. Part of the binding only.
#pragma once

#include "binding_results.hpp"

namespace deepreduce::binding {

/// New bytes, as many as `size` says for the values, filled by an encoder.
template <typename Size, typename Kernel>
py::bytes encode(const py::object& values, Size size, Kernel kernel) {
    return with_values(values, "values", [&](const py::array& array, auto value) {
        const auto source = view<decltype(value)>(array);
        Span<std::uint8_t> out;
        py::bytes bytes = new_bytes(size(source), out);
        run([&] { kernel(source, out); });
        return bytes;
    });
}

/// New values of a dtype, filled by a decoder once `check` has passed the payload and the number kept, told the dtype
/// by a value of it.
template <typename Check, typename Kernel>
py::array decode(const py::object& payload, const py::object& kept, const py::object& dtype, Check check,
                 Kernel kernel) {
    const Payload data(payload);
    const Bytes bytes = data.bytes();
    const std::uint64_t count = to_kept(kept);
    return with_value_dtype(dtype, "dtype", [&](auto value) -> py::array {
        require_ok(check(bytes, count, value));
        py::array_t<decltype(value)> values(static_cast<py::ssize_t>(count));
        require_ok(run([&, out = fill(values)] { return kernel(bytes, out); }));
        return values;
    });
}

}  // namespace deepreduce::binding
