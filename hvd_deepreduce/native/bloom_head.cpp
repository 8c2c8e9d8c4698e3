#include "bloom.hpp"
#include "bytes.hpp"
#include "varint.hpp"

namespace deepreduce::bloom {
namespace {

constexpr const char* kWhere = "bloom";
constexpr std::uint64_t kKeyBytes = 8;

bool has_key(Policy policy) { return policy == Policy::random || policy == Policy::conflicts; }

std::uint64_t bits_set(Bytes filter) {
    std::uint64_t count = 0;
    std::size_t i = 0;
    for (; i + 8 <= filter.size; i += 8) {
        count += static_cast<unsigned>(__builtin_popcountll(load<std::uint64_t>(filter.data + i)));
    }
    for (; i < filter.size; ++i) {
        count += static_cast<unsigned>(__builtin_popcount(filter[i]));
    }
    return count;
}

}  // namespace

std::size_t write_head(const Head& head, Span<std::uint8_t> out) {
    out[0] = static_cast<std::uint8_t>(static_cast<unsigned>(head.policy) | (head.hashes << 3));
    VarintWriter writer(out.part(1, out.size - 1));
    writer.put(head.size);
    const std::size_t end = 1 + static_cast<std::size_t>(writer.size());
    if (!has_key(head.policy)) {
        return end;
    }
    store(out.data + end, head.key);
    return end + kKeyBytes;
}

Status read(Bytes payload, Engine engine, std::uint64_t kept, std::uint64_t numel, Head& head, Bytes& filter) {
    const Status status = check_kept(kWhere, kept, numel);
    if (!status.ok()) {
        return status;
    }
    if (payload.size == 0) {
        return failure(Fault::truncated, kWhere, "payload of 0 bytes has no head");
    }
    const unsigned policy = payload[0] % 8;
    head.policy = static_cast<Policy>(policy);
    head.hashes = payload[0] / 8;
    if (policy > static_cast<unsigned>(Policy::conflicts) || head.hashes == 0) {
        return failure(Fault::corrupt, kWhere, "policy {} with {} hashes; allowed are 0 to 5 with 1 to 31", policy,
                       head.hashes);
    }
    const Bytes rest = payload.part(1, payload.size - 1);
    VarintReader reader(rest);
    if (!reader.take(head.size)) {
        return reader.failure(kWhere);
    }
    // A size is below 2**35, so that none of these numbers overflows.
    const std::uint64_t bits = engine == Engine::native ? 8 * head.size : head.hashes * head.size;
    const std::uint64_t least = engine == Engine::native ? 8 * kLeastBytes : head.hashes;
    if (bits < kept || bits < least || bits > kMostBitsPerKept * kept) {
        return failure(Fault::corrupt, kWhere, "a filter of {} bits for {} kept and {} hashes", bits, kept,
                       head.hashes);
    }
    const std::uint64_t key_bytes = has_key(head.policy) ? kKeyBytes : 0;
    const std::uint64_t filter_bytes = bits / 8 + (bits % 8 != 0);
    const std::uint64_t start = 1 + varint_size(head.size) + key_bytes;
    const Status length = check_length(kWhere, payload, start + filter_bytes);
    if (!length.ok()) {
        return length;
    }
    head.key = key_bytes == 0 ? 0 : load<std::uint64_t>(payload.data + start - key_bytes);
    filter = payload.part(start, filter_bytes);
    if (bits % 8 != 0 && filter[filter_bytes - 1] >> (bits % 8) != 0) {
        return failure(Fault::corrupt, kWhere, "bits are set beyond the {} of the filter", bits);
    }
    const std::uint64_t set = bits_set(filter);
    if (set > head.hashes * kept) {
        return failure(Fault::corrupt, kWhere, "{} bits are set; {} kept set {} at most", set, kept,
                       head.hashes * kept);
    }
    return {};
}

}  // namespace deepreduce::bloom
