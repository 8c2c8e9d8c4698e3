// What fuzz targets share: settings off the front of an input, buffers of the exact size, and promises.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "magnitude.hpp"
#include "span.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace deepreduce::fuzz {

inline void require(bool kept, const char* promise) {
    if (!kept) {
        std::fprintf(stderr, "broken promise: %s\n", promise);
        std::abort();
    }
}

/// A heap buffer with not a byte to spare on either side, so that ASan sees the first one outside. Nothing has no
/// address.
template <typename T>
class Exact {
  public:
    explicit Exact(std::size_t size) : data_(size == 0 ? nullptr : new T[size]), size_(size) {}

    explicit Exact(Span<const T> copied) : Exact(copied.size) { std::copy(copied.begin(), copied.end(), data_.get()); }

    static Exact zeros(std::size_t size) {
        Exact made(size);
        std::fill(made.span().begin(), made.span().end(), T{0});
        return made;
    }

    std::size_t size() const { return size_; }
    Span<T> span() { return {data_.get(), size_}; }
    Span<const T> view() const { return {data_.get(), size_}; }

  private:
    std::unique_ptr<T[]> data_;
    std::size_t size_;
};

/// Whether two spans hold the same bytes; tells NaNs and zeros apart.
template <typename T>
bool same_bytes(Span<const T> left, Span<const T> right) {
    return left.size == right.size &&
           (left.size == 0 || std::memcmp(left.data, right.data, left.size * sizeof(T)) == 0);
}

template <typename V>
bool is_finite(V value) {
    return magnitude(value) < FloatBits<V>::kInfinity;
}

class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : rest_{data, size} {}

    /// The next `count` bytes, at most 8, as a little-endian integer; zeros beyond the end.
    std::uint64_t take(unsigned count) {
        const std::size_t there = std::min<std::size_t>(count, rest_.size);
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < there; ++i) {
            value |= std::uint64_t{rest_[i]} << (8 * i);
        }
        rest_ = rest_.part(there, rest_.size - there);
        return value;
    }

    Exact<std::uint8_t> rest() const { return Exact<std::uint8_t>(rest_); }

  private:
    Bytes rest_;
};

}  // namespace deepreduce::fuzz
