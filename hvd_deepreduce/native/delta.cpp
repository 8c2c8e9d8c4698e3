#include "delta.hpp"

#include <algorithm>

#include "positions.hpp"
#include "varint.hpp"

namespace deepreduce {
namespace {

constexpr const char* kWhere = "delta";

}  // namespace

std::uint64_t delta_capacity(std::uint64_t kept, std::uint64_t numel) {
    if (kept == 0 || kept > numel) {
        return 0;
    }
    // Every byte beyond a gap's first stands for 128 elements or more that were not kept.
    return std::min(kept * varint_size(numel - kept), kept + (numel - kept) / 128);
}

template <typename P>
Status delta_encode(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out, std::uint64_t& size) {
    size = 0;
    const Status status = check_positions(positions, numel);
    if (!status.ok()) {
        return status;
    }
    VarintWriter writer(out);
    std::uint64_t next = 0;
    for (const P position : positions) {
        writer.put(position - next);
        next = std::uint64_t{position} + 1;
    }
    size = writer.size();
    return {};
}

Status delta_check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
    const Status status = check_kept(kWhere, kept, numel);
    if (status.ok() && kept > payload.size) {
        return failure(Fault::truncated, kWhere, "payload of {} bytes; {} gaps take a byte each at least", payload.size,
                       kept);
    }
    return status;
}

template <typename P>
Status delta_decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
    const Status status = delta_check(payload, positions.size, numel);
    if (!status.ok()) {
        return status;
    }
    VarintReader reader(payload);
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < positions.size; ++i) {
        std::uint64_t gap = 0;
        if (!reader.take(gap)) {
            return reader.failure(kWhere);
        }
        const std::uint64_t position = next + gap;
        if (position >= numel) {
            return failure(Fault::corrupt, kWhere, "position {} at gap {} is outside numel {}", position, i, numel);
        }
        positions[i] = static_cast<P>(position);
        next = position + 1;
    }
    return reader.finish(kWhere);
}

template Status delta_encode(Span<const std::uint32_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);
template Status delta_encode(Span<const std::uint64_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);
template Status delta_decode(Bytes, std::uint64_t, Span<std::uint32_t>);
template Status delta_decode(Bytes, std::uint64_t, Span<std::uint64_t>);

}  // namespace deepreduce
