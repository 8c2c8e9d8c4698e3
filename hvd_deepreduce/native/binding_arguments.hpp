// What Python hands in, checked. Part of the binding only.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <utility>

#include "positions.hpp"
#include "span.hpp"
#include "status.hpp"

namespace deepreduce::binding {

namespace py = pybind11;

[[noreturn]] inline void raise(Fault fault, const std::string& message) {
    const char* name = fault == Fault::truncated ? "TruncatedPayloadError"
                       : fault == Fault::corrupt ? "CorruptPayloadError"
                                                 : "InvalidSettingError";
    const py::object type = py::module_::import("hvd_deepreduce.errors").attr(name);
    PyErr_SetObject(type.ptr(), py::str(message).ptr());
    throw py::error_already_set();
}

[[noreturn]] inline void refuse(const std::string& message) { raise(Fault::setting, message); }

inline std::string text_of(py::handle object) { return py::str(object).cast<std::string>(); }

inline void require_ok(const Status& status) {
    if (status.ok()) {
        return;
    }
    std::string message = std::string(status.where) + ": " + status.text;
    std::size_t place = 0;
    for (const std::uint64_t number : status.numbers) {
        place = message.find("{}", place);
        if (place == std::string::npos) {
            break;
        }
        const std::string digits = std::to_string(number);
        message.replace(place, 2, digits);
        place += digits.size();
    }
    raise(status.fault, message);
}

inline std::uint64_t to_integer(py::handle object, const char* name, std::uint64_t lowest, std::uint64_t highest) {
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
    std::uint64_t value = 0;
    bool allowed = false;
    if (index) {
        value = PyLong_AsUnsignedLongLong(index.ptr());
        allowed = !PyErr_Occurred() && value >= lowest && value <= highest;
    }
    PyErr_Clear();
    if (!allowed) {
        refuse(std::string(name) + ": " + py::repr(object).cast<std::string>() + "; allowed is an integer from " +
               std::to_string(lowest) + " to " + std::to_string(highest));
    }
    return value;
}

inline std::uint64_t to_numel(py::handle object) { return to_integer(object, "numel", 0, kMaxNumel); }
inline std::uint64_t to_key(py::handle object) { return to_integer(object, "key", 0, ~std::uint64_t{0}); }
inline std::uint64_t to_kept(py::handle object) { return to_integer(object, "kept", 0, kMaxNumel); }

/// An array of one dimension that kernels can walk; its dtype is left to the caller.
inline py::array to_array(py::handle object, const char* name) {
    if (!py::isinstance<py::array>(object)) {
        refuse(std::string(name) + ": a NumPy array is needed, not " + text_of(py::type::of(object).attr("__name__")));
    }
    const auto array = py::reinterpret_borrow<py::array>(object);
    const char* problem = nullptr;
    if (array.ndim() != 1) {
        problem = " dimensions; one is needed";
    } else if (array.dtype().byteorder() != '=' && array.dtype().byteorder() != '|') {
        problem = " dimension in foreign byte order; the machine's own is needed";
    } else if ((array.flags() & py::array::c_style) == 0) {
        problem = " dimension, not contiguous; a contiguous array is needed";
    } else if ((array.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_) == 0) {
        problem = " dimension, not aligned to its dtype; an aligned array is needed";
    }
    if (problem != nullptr) {
        refuse(std::string(name) + ": " + std::to_string(array.ndim()) + problem);
    }
    return array;
}

template <typename T>
bool holds(const py::array& array) {
    return array.dtype().kind() == py::dtype::of<T>().kind() && array.itemsize() == static_cast<py::ssize_t>(sizeof(T));
}

template <typename T>
Span<const T> view(const py::array& array) {
    return {static_cast<const T*>(array.data()), static_cast<std::size_t>(array.size())};
}

template <typename T>
Span<T> writeable(py::array array, const char* name) {
    if (!array.writeable()) {
        refuse(std::string(name) + ": the array is read-only; it is written to");
    }
    return {static_cast<T*>(array.mutable_data()), static_cast<std::size_t>(array.size())};
}

/// Another array that must have the dtype of a first.
template <typename T>
py::array to_array_of(py::handle object, const char* name) {
    py::array array = to_array(object, name);
    if (!holds<T>(array)) {
        refuse(std::string(name) + ": dtype " + text_of(array.dtype()) + "; needed is " + text_of(py::dtype::of<T>()));
    }
    return array;
}

inline void require_size(const py::array& array, const char* name, const py::array& other, const char* other_name) {
    if (array.size() != other.size()) {
        refuse(std::string(name) + ": " + std::to_string(array.size()) + " elements; " + other_name + " has " +
               std::to_string(other.size()));
    }
}

/// Calls `use` with a float or a double that stands for the dtype.
template <typename Use>
auto with_value_dtype(py::handle object, const char* name, Use use) {
    const py::dtype dtype = py::dtype::from_args(py::reinterpret_borrow<py::object>(object));
    const bool native = dtype.byteorder() == '=';
    if (native && dtype.kind() == 'f' && dtype.itemsize() == 4) {
        return use(float{});
    }
    if (native && dtype.kind() == 'f' && dtype.itemsize() == 8) {
        return use(double{});
    }
    refuse(std::string(name) + ": dtype " + text_of(dtype) + "; allowed are float32 and float64");
}

/// Calls `use` with the array and a float or a double that stands for its dtype.
template <typename Use>
auto with_values(py::handle object, const char* name, Use use) {
    const py::array array = to_array(object, name);
    return with_value_dtype(array.dtype(), name, [&](auto value) { return use(array, value); });
}

/// Calls `use` with an integer that stands for the dtype of positions below numel.
template <typename Use>
auto with_position_dtype(std::uint64_t numel, Use use) {
    return numel <= kMaxNarrow ? use(std::uint32_t{}) : use(std::uint64_t{});
}

/// Calls `use` with the positions, refused unless they have the dtype that numel asks for.
template <typename Use>
auto with_positions(py::handle object, std::uint64_t numel, Use use) {
    const py::array array = to_array(object, "positions");
    return with_position_dtype(numel, [&](auto position) {
        using P = decltype(position);
        if (!holds<P>(array)) {
            refuse("positions: dtype " + text_of(array.dtype()) + "; for numel " + std::to_string(numel) +
                   " needed is " + text_of(py::dtype::of<P>()));
        }
        return use(view<P>(array));
    });
}

/// Bytes of any object that exports them in one piece, kept alive and in place.
class Payload {
  public:
    explicit Payload(py::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) {
            PyErr_Clear();
            refuse("payload: contiguous bytes are needed, not " + text_of(py::type::of(object).attr("__name__")));
        }
    }
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;
    ~Payload() { PyBuffer_Release(&buffer_); }

    Bytes bytes() const {
        return {static_cast<const std::uint8_t*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
    }

  private:
    Py_buffer buffer_{};
};

}  // namespace deepreduce::binding
