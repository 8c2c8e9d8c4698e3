#include "positions.hpp"

#include "bytes.hpp"

namespace deepreduce {
namespace {

constexpr const char* kWhere = "positions";
constexpr const char* kRaw = "raw positions";
constexpr const char* kOutside = "{} at index {} is outside numel {}";

template <typename P>
bool is_support(Span<const P> positions, std::uint64_t numel) {
    if (positions.size == 0) {
        return true;
    }
    // Without an early exit the compiler makes vector code of it.
    unsigned unsorted = 0;
    for (std::size_t i = 1; i < positions.size; ++i) {
        unsorted |= static_cast<unsigned>(positions[i] <= positions[i - 1]);
    }
    return unsorted == 0 && positions[positions.size - 1] < numel;
}

template <typename P>
Status check(Span<const P> positions, std::uint64_t numel, Fault fault, const char* where) {
    if (is_support(positions, numel)) {
        return {};
    }
    for (std::size_t i = 0; i < positions.size; ++i) {
        if (positions[i] >= numel) {
            return failure(fault, where, kOutside, positions[i], i, numel);
        }
        if (i > 0 && positions[i] <= positions[i - 1]) {
            return failure(fault, where, "{} at index {} is not above {} before it", positions[i], i, positions[i - 1]);
        }
    }
    return {};
}

}  // namespace

template <typename P>
Status check_positions(Span<const P> positions, std::uint64_t numel) {
    return check(positions, numel, Fault::setting, kWhere);
}

template <typename P>
Status check_inside(Span<const P> positions, std::uint64_t numel) {
    P highest = 0;
    for (const P position : positions) {
        highest = position > highest ? position : highest;
    }
    if (highest < numel || positions.size == 0) {
        return {};
    }
    std::size_t index = 0;
    while (positions[index] < numel) {
        ++index;
    }
    return failure(Fault::setting, kWhere, kOutside, positions[index], index, numel);
}

Status raw_positions_check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
    const Status status = check_kept(kRaw, kept, numel);
    return status.ok() ? check_length(kRaw, payload, kept * (numel <= kMaxNarrow ? 4 : 8)) : status;
}

template <typename P>
Status raw_positions_decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
    const Status status = raw_positions_check(payload, positions.size, numel);
    if (!status.ok()) {
        return status;
    }
    for (std::size_t i = 0; i < positions.size; ++i) {
        positions[i] = load<P>(payload.data + i * sizeof(P));
    }
    return check<P>(positions, numel, Fault::corrupt, kRaw);
}

template Status check_positions(Span<const std::uint32_t>, std::uint64_t);
template Status check_positions(Span<const std::uint64_t>, std::uint64_t);
template Status check_inside(Span<const std::uint32_t>, std::uint64_t);
template Status check_inside(Span<const std::uint64_t>, std::uint64_t);
template Status raw_positions_decode(Bytes, std::uint64_t, Span<std::uint32_t>);
template Status raw_positions_decode(Bytes, std::uint64_t, Span<std::uint64_t>);

}  // namespace deepreduce
