// How a kernel says what it found; the binding makes exceptions of it.
#pragma once

#include <array>
#include <cstdint>

#include "span.hpp"

namespace deepreduce {

enum class Fault { none, setting, truncated, corrupt };

/// `where` is the codec or argument at fault; `text` holds one {} for each number that belongs to the message.
struct Status {
    Fault fault = Fault::none;
    const char* where = "";
    const char* text = "";
    std::array<std::uint64_t, 3> numbers{};

    bool ok() const { return fault == Fault::none; }
};

inline Status failure(Fault fault, const char* where, const char* text, std::uint64_t first = 0,
                      std::uint64_t second = 0, std::uint64_t third = 0) {
    return {fault, where, text, {first, second, third}};
}

/// Fails unless a payload of known size has it.
inline Status check_length(const char* where, Bytes payload, std::uint64_t needed) {
    if (payload.size < needed) {
        return failure(Fault::truncated, where, "payload of {} bytes; {} are needed", payload.size, needed);
    }
    if (payload.size > needed) {
        return failure(Fault::corrupt, where, "payload of {} bytes; {} are left over", payload.size,
                       payload.size - needed);
    }
    return {};
}

/// Fails where more elements are said to be kept than there are.
inline Status check_kept(const char* where, std::uint64_t kept, std::uint64_t numel) {
    return kept <= numel ? Status{} : failure(Fault::corrupt, where, "kept {} is above numel {}", kept, numel);
}

}  // namespace deepreduce
