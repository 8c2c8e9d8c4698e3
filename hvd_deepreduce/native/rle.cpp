#include "rle.hpp"

#include <algorithm>

#include "positions.hpp"
#include "varint.hpp"

namespace deepreduce {
namespace {

constexpr const char* kWhere = "rle";

/// Reads the runs and calls fill(found, first, count) for each of ones: `count` positions from `first` on, of which
/// `found` came before, all of them below numel and no more than were kept.
template <typename Fill>
Status walk(Bytes payload, std::uint64_t kept, std::uint64_t numel, Fill fill) {
    const Status status = check_kept(kWhere, kept, numel);
    if (!status.ok()) {
        return status;
    }
    VarintReader reader(payload);
    std::uint64_t next = 0;
    for (std::uint64_t found = 0; found < kept;) {
        std::uint64_t zeros = 0;
        std::uint64_t ones = 0;
        if (!reader.take(zeros) || !reader.take(ones)) {
            return reader.failure(kWhere);
        }
        // No run but the first is empty, so what is stored of the others is one less.
        next += zeros + (found == 0 ? 0 : 1);
        ones += 1;
        if (next + ones > numel) {
            return failure(Fault::corrupt, kWhere, "a run of {} ones from position {} on ends outside numel {}", ones,
                           next, numel);
        }
        if (ones > kept - found) {
            return failure(Fault::corrupt, kWhere, "a run of {} ones after {} others; kept is {}", ones, found, kept);
        }
        fill(found, next, ones);
        found += ones;
        next += ones;
    }
    return reader.finish(kWhere);
}

}  // namespace

std::uint64_t rle_capacity(std::uint64_t kept, std::uint64_t numel) {
    if (kept == 0 || kept > numel) {
        return 0;
    }
    // Runs of ones have zeros between them, and every byte beyond a run's first stands for 128 elements or more.
    const std::uint64_t runs = 2 * std::min(kept, numel - kept + 1);
    return std::min(runs * varint_size(numel - 1), runs + numel / 128);
}

template <typename P>
Status rle_encode(Span<const P> positions, std::uint64_t numel, Span<std::uint8_t> out, std::uint64_t& size) {
    size = 0;
    const Status status = check_positions(positions, numel);
    if (!status.ok() || positions.size == 0) {
        return status;
    }
    VarintWriter writer(out);
    writer.put(positions[0]);
    std::size_t start = 0;
    for (std::size_t i = 1; i < positions.size; ++i) {
        const P zeros = static_cast<P>(positions[i] - positions[i - 1] - 1);
        if (zeros != 0) {
            writer.put(i - start - 1);
            writer.put(zeros - P{1});
            start = i;
        }
    }
    writer.put(positions.size - start - 1);
    size = writer.size();
    return {};
}

Status rle_check(Bytes payload, std::uint64_t kept, std::uint64_t numel) {
    return walk(payload, kept, numel, [](std::uint64_t, std::uint64_t, std::uint64_t) {});
}

template <typename P>
Status rle_decode(Bytes payload, std::uint64_t numel, Span<P> positions) {
    return walk(payload, positions.size, numel, [=](std::uint64_t found, std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            positions[found + i] = static_cast<P>(first + i);
        }
    });
}

template Status rle_encode(Span<const std::uint32_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);
template Status rle_encode(Span<const std::uint64_t>, std::uint64_t, Span<std::uint8_t>, std::uint64_t&);
template Status rle_decode(Bytes, std::uint64_t, Span<std::uint32_t>);
template Status rle_decode(Bytes, std::uint64_t, Span<std::uint64_t>);

}  // namespace deepreduce
