// All frames of a bundle in one call: FORMAT.md, 3. What pipeline.py does stage by stage, for stages that are native.
#pragma once

#include <cstdint>
#include <vector>

#include "magnitude.hpp"
#include "qsgd.hpp"
#include "span.hpp"

namespace deepreduce {

enum class Selection { nonzero, topk, above, dropping };

/// Wire ids of FORMAT.md, 4 and 5.
enum class IndexId : std::uint64_t { raw = 1, bitmap = 3, rice = 4 };
enum class ValueId : std::uint64_t { raw = 1, fp16 = 2, bf16 = 3, qsgd = 4 };

struct Stages {
    Selection selection;
    double threshold;
    IndexId index;
    ValueId value;
    QsgdSettings qsgd;
    bool residual;
};

/// What the sparsifier is told of one tensor.
template <typename V>
struct Choice {
    /// How many to keep, for Selection::topk.
    std::uint64_t kept = 0;
    /// For Selection::dropping: above what to keep, or, if negative, from how large a sample to estimate that, and how
    /// many of the sample are to exceed it.
    double threshold = 0;
    std::uint64_t sampled = 0;
    std::uint64_t above = 0;
    /// Overwritten with a sample of the magnitudes; may be empty.
    Span<V> sample;
};

/// What a sender knows of a frame; sizes in bytes.
struct FrameFacts {
    std::uint64_t length = 0;
    std::uint64_t kept = 0;
    std::uint64_t index_bytes = 0;
    std::uint64_t value_bytes = 0;
    std::uint64_t finite = 1;
};

/// The payloads of one frame where they lie in a bundle.
struct FrameView {
    enum class Kind { empty, not_finite, payloads };
    Kind kind = Kind::empty;
    std::uint64_t kept = 0;
    Bytes index;
    Bytes value;
};

/// Positions of one width, and room to look for them.
template <typename P>
struct PositionScratch {
    std::vector<P> positions;
    std::vector<P> candidates;
};

/// Scratch space of one thread, kept from tensor to tensor: kernels themselves allocate nothing.
template <typename V>
struct Workspace {
    std::vector<std::uint8_t> index_payload;
    std::vector<std::uint8_t> value_payload;
    std::vector<V> values;
    std::vector<Bits<V>> magnitudes;
    PositionScratch<std::uint32_t> narrow;
    PositionScratch<std::uint64_t> wide;
};

/// Appends the frame of a gradient to `out` and brings `residual` up to date (empty where the stages have none). `key`
/// is for stochastic codecs.
template <typename V>
FrameFacts encode_frame(const Stages& stages, Span<const V> gradient, Span<V> residual, const Choice<V>& choice,
                        std::uint64_t key, Workspace<V>& workspace, std::vector<std::uint8_t>& out);

/// Takes one frame from the front of `bundle`; false for one that no encoder makes with these stages.
bool read_frame(const Stages& stages, std::uint64_t numel, Bytes& bundle, FrameView& frame);

/// dense += factor x the frame's gradient; false for payloads that no encoder makes. The frame is not of
/// Kind::not_finite.
template <typename V>
bool add_frame(const Stages& stages, const FrameView& frame, double factor, Workspace<V>& workspace, Span<V> dense);

}  // namespace deepreduce
