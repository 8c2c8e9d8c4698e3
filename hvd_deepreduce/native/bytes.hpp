// Little-endian loads and stores at any address.
#pragma once

#include <cstdint>
#include <cstring>

namespace deepreduce {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the wire format is little-endian, and so must the machine be");

template <typename T>
T load(const void* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <typename T>
void store(void* to, T value) {
    std::memcpy(to, &value, sizeof value);
}

}  // namespace deepreduce
