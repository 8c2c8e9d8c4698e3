#include "qsgd.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "bitstream.hpp"
#include "magnitude.hpp"
#include "random.hpp"

namespace deepreduce {
namespace {

constexpr const char* kWhere = "qsgd";

std::uint64_t bucket_count(std::uint64_t kept, QsgdSettings settings) {
    return kept / settings.bucket + (kept % settings.bucket != 0);
}

unsigned level_count(QsgdSettings settings) { return (1u << (settings.bits - 1)) - 1; }

/// The L2 norm, or NaN where a value is not finite.
template <typename V>
float norm_of(Span<const V> bucket) {
    double sum = 0;
    bool finite = true;
    for (const V value : bucket) {
        sum += static_cast<double>(value) * static_cast<double>(value);
        finite = finite && magnitude(value) < FloatBits<V>::kInfinity;
    }
    if (!finite) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    return static_cast<float>(std::min(std::sqrt(sum), static_cast<double>(FLT_MAX)));
}

/// Rounds at random to one of the two nearest levels, so that the mean is right.
unsigned level_of(double scaled, unsigned levels, double unit) {
    if (scaled >= levels) {
        return levels;
    }
    const auto lower = static_cast<unsigned>(scaled);
    return lower + (unit < scaled - lower ? 1u : 0u);
}

}  // namespace

std::uint64_t qsgd_size(std::uint64_t kept, QsgdSettings settings) {
    return 4 * bucket_count(kept, settings) + (kept * settings.bits + 7) / 8;
}

template <typename V>
void qsgd_encode(Span<const V> values, QsgdSettings settings, std::uint64_t key, Span<std::uint8_t> out) {
    const std::size_t buckets = bucket_count(values.size, settings);
    const unsigned levels = level_count(settings);
    const unsigned sign_bit = 1u << (settings.bits - 1);
    BitWriter fields(out.part(4 * buckets, out.size - 4 * buckets));
    for (std::size_t b = 0; b < buckets; ++b) {
        const std::size_t start = b * settings.bucket;
        const auto bucket = values.part(start, std::min<std::size_t>(settings.bucket, values.size - start));
        const float norm = norm_of(bucket);
        store(out.data + 4 * b, norm);
        if (!(norm > 0)) {
            for (std::size_t i = 0; i < bucket.size; ++i) {
                fields.put(0, settings.bits);
            }
            continue;
        }
        const double scale = levels / static_cast<double>(norm);
        for (std::size_t i = 0; i < bucket.size; ++i) {
            const double scaled = std::abs(static_cast<double>(bucket[i])) * scale;
            const unsigned level = level_of(scaled, levels, random_unit(key, start + i));
            fields.put(level | (std::signbit(bucket[i]) ? sign_bit : 0), settings.bits);
        }
    }
    fields.finish();
}

Status qsgd_check(Bytes payload, std::uint64_t kept, QsgdSettings settings) {
    return check_length(kWhere, payload, qsgd_size(kept, settings));
}

template <typename V>
Status qsgd_decode(Bytes payload, QsgdSettings settings, Span<V> values) {
    const Status status = qsgd_check(payload, values.size, settings);
    if (!status.ok()) {
        return status;
    }
    const std::size_t buckets = bucket_count(values.size, settings);
    const unsigned levels = level_count(settings);
    BitReader fields(payload.part(4 * buckets, payload.size - 4 * buckets));
    for (std::size_t b = 0; b < buckets; ++b) {
        const std::size_t start = b * settings.bucket;
        const std::size_t end = std::min<std::size_t>(values.size, start + settings.bucket);
        const double norm = load<float>(payload.data + 4 * b);
        for (std::size_t i = start; i < end; ++i) {
            const std::uint64_t field = fields.take(settings.bits);
            const auto size = static_cast<V>(norm * static_cast<double>(field & levels) / levels);
            values[i] = field > levels ? -size : size;
            if (std::isnan(size)) {
                // Processors differ in the sign and payload of a computed NaN.
                values[i] = std::numeric_limits<V>::quiet_NaN();
            }
        }
    }
    if (!fields.padding_is_zero()) {
        return failure(Fault::corrupt, kWhere, "padding bits of the last byte, {}, are not zero",
                       payload[payload.size - 1]);
    }
    return {};
}

template void qsgd_encode(Span<const float>, QsgdSettings, std::uint64_t, Span<std::uint8_t>);
template void qsgd_encode(Span<const double>, QsgdSettings, std::uint64_t, Span<std::uint8_t>);
template Status qsgd_decode(Bytes, QsgdSettings, Span<float>);
template Status qsgd_decode(Bytes, QsgdSettings, Span<double>);

}  // namespace deepreduce
