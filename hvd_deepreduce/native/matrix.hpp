// Index codec `matrix`: FORMAT.md, 4.10.
#pragma once

#include "matrix_model.hpp"
#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

/// Bytes that hold the payload of any support of this size, whichever law it is coded by.
std::uint64_t matrix_capacity(std::uint64_t kept, std::uint64_t numel);

/// How much scratch space an encoder needs.
matrix::Room matrix_encode_room(std::uint64_t kept, std::uint64_t rows, std::uint64_t columns);

/// Checks the positions and writes the payload; `out` has the capacity, `size` becomes the length of the payload.
template <typename P>
Status matrix_encode(Span<const P> positions, std::uint64_t rows, std::uint64_t columns, matrix::Scratch scratch,
                     Span<std::uint8_t> out, std::uint64_t& size);

/// Fails where the head is wrong or so many positions can't be in so few bytes, or in the matrix: asked before memory
/// is reserved for them. Sets how much scratch space the decoder needs.
Status matrix_check(Bytes payload, std::uint64_t kept, std::uint64_t rows, std::uint64_t columns, matrix::Room& room);

/// Fills `positions`, whose size is the number kept.
template <typename P>
Status matrix_decode(Bytes payload, std::uint64_t rows, std::uint64_t columns, matrix::Scratch scratch,
                     Span<P> positions);

}  // namespace deepreduce
