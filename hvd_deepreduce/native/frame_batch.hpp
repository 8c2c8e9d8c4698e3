// The frames of many tensors in one call, on several threads. Takes and gives plain data, so that it can be called from
// another library: the TensorFlow op's.
#pragma once

#include "frames.hpp"

namespace deepreduce {

/// A dense gradient of either value type; of neither where there is none.
struct Dense {
    Span<float> single;
    Span<double> twice;

    bool is_single() const { return single.data != nullptr; }
    std::size_t numel() const { return is_single() ? single.size : twice.size; }
};

template <typename V>
Span<V> of(const Dense& dense) {
    if constexpr (sizeof(V) == sizeof(float)) {
        return dense.single;
    } else {
        return dense.twice;
    }
}

/// Calls `use` with the span of the type that the gradient has.
template <typename Use>
auto with_dense(const Dense& dense, Use use) {
    return dense.is_single() ? use(dense.single) : use(dense.twice);
}

/// A Choice whose sample is of either value type.
struct AnyChoice {
    std::uint64_t kept = 0;
    double threshold = 0;
    std::uint64_t sampled = 0;
    std::uint64_t above = 0;
    Dense sample;

    template <typename V>
    Choice<V> as() const {
        return {kept, threshold, sampled, above, of<V>(sample)};
    }
};

/// What `encode_frame` takes.
struct EncodeJob {
    Dense gradient;
    Dense residual;
    AnyChoice choice;
    std::uint64_t key = 0;
};

/// Numbers per job that encoding tells: length, kept, index bytes, value bytes, finite, nanoseconds;
constexpr std::size_t kEncodeFacts = 6;
/// and decoding: finite, nanoseconds.
constexpr std::size_t kDecodeFacts = 2;
constexpr std::uint64_t kMaxThreads = 256;

/// Gives room for so many bytes.
using Reserve = std::uint8_t* (*)(void* context, std::size_t size);

/// Writes one frame per job, in turn, to what `reserve` gives once the size is known.
void encode_batch(const Stages& stages, Span<const EncodeJob> jobs, unsigned threads, Span<std::int64_t> facts,
                  Reserve reserve, void* context);

/// Overwrites each output with factor x the sum over all bodies, one per rank: a frame per numel and zeros. An output
/// that is of neither type is skipped. False for bytes that no encoder makes with these stages; outputs are undefined
/// then.
bool decode_batch(const Stages& stages, Span<const Bytes> bodies, Span<const std::uint64_t> numels,
                  Span<const Dense> outputs, double factor, unsigned threads, Span<std::int64_t> facts);

/// Both, for a library that was compiled with these very headers; `layout` tells.
struct FrameKernels {
    std::uint64_t layout;
    decltype(&encode_batch) encode;
    decltype(&decode_batch) decode;
};

constexpr std::uint64_t kFrameKernelsLayout = 1'000'000 * sizeof(EncodeJob) + 1'000 * sizeof(Stages) + 1;

}  // namespace deepreduce
