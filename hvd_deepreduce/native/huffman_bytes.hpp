// Index codec `huffman(of='bytes')`: FORMAT.md, 4.6.
#pragma once

#include "span.hpp"
#include "status.hpp"

namespace deepreduce {

/// Bytes that hold the payload of any support of this size.
std::uint64_t huffman_bytes_capacity(std::uint64_t kept, std::uint64_t numel);

/// Checks the positions, writes what fits into `out`, and sets `bits` to the length of the whole bit stream.
template <typename P>
Status huffman_bytes_encode(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out, std::uint64_t& bits);

/// Fails where so many positions can't be in so few bytes, or in numel: asked before memory is reserved for them.
Status huffman_bytes_check(Bytes payload, std::uint64_t kept, std::uint64_t numel);

/// Fills `positions`, whose size is the number kept.
template <typename P>
Status huffman_bytes_decode(Bytes payload, std::uint64_t numel, Span<P> positions);

}  // namespace deepreduce
