// What Python is handed back: arrays and bytes that a kernel fills. Part of the binding only.
#pragma once

#include <memory>

#include "binding_arguments.hpp"

namespace deepreduce::binding {

template <typename T>
Span<T> fill(py::array_t<T>& array) {
    return {array.mutable_data(), static_cast<std::size_t>(array.size())};
}

/// New bytes, filled by the kernel before anyone else sees them.
inline py::bytes new_bytes(std::uint64_t size, Span<std::uint8_t>& out) {
    auto bytes = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(size)));
    if (!bytes) {
        throw py::error_already_set();
    }
    out = {reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(bytes.ptr())), static_cast<std::size_t>(size)};
    return bytes;
}

/// Scratch space as the allocator gives it.
template <typename T>
std::unique_ptr<T[]> scratch(std::size_t size) {
    return std::unique_ptr<T[]>(new T[size]);
}

/// Runs a kernel without the GIL.
template <typename Kernel>
auto run(Kernel kernel) {
    const py::gil_scoped_release release;
    return kernel();
}

}  // namespace deepreduce::binding
