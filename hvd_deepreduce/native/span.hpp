// What kernels take and give: a pointer with its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace deepreduce {

template <typename T>
struct Span {
    T* data = nullptr;
    std::size_t size = 0;

    T& operator[](std::size_t index) const { return data[index]; }
    T* begin() const { return data; }
    T* end() const { return data + size; }

    /// The elements from `start` on, `count` of them; both must lie inside.
    Span part(std::size_t start, std::size_t count) const { return {data + start, count}; }

    template <typename U = T, typename = std::enable_if_t<!std::is_const_v<U>>>
    operator Span<const U>() const {
        return {data, size};
    }
};

using Bytes = Span<const std::uint8_t>;

}  // namespace deepreduce
