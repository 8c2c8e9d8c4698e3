#include "frames.hpp"

#include <algorithm>

#include "bitmap.hpp"
#include "dense.hpp"
#include "half_floats.hpp"
#include "positions.hpp"
#include "rice.hpp"
#include "select.hpp"

namespace deepreduce {
namespace {

constexpr std::uint8_t kSpecial = 0;
constexpr std::uint8_t kEmpty = 0;
constexpr std::uint8_t kNotFinite = 1;
constexpr unsigned kLongestVarint = 9;

/// The first `size` elements. Never shrinks a vector: growing it again would overwrite it with zeros.
template <typename T>
Span<T> room(std::vector<T>& vector, std::size_t size) {
    if (vector.size() < size) {
        vector.resize(size);
    }
    return {vector.data(), size};
}

/// Calls `use` with the scratch space for positions below numel.
template <typename V, typename Use>
auto with_positions(Workspace<V>& workspace, std::uint64_t numel, Use use) {
    return numel <= kMaxNarrow ? use(workspace.narrow) : use(workspace.wide);
}

template <typename V>
double threshold_of(const Stages& stages, const Choice<V>& choice, const Compensated<V>& dense,
                    Workspace<V>& workspace) {
    if (stages.selection == Selection::nonzero) {
        return 0;
    }
    if (stages.selection == Selection::above) {
        return stages.threshold;
    }
    if (choice.sample.size != 0) {
        const auto magnitudes = room(workspace.magnitudes, choice.sample.size);
        take_sample(dense, magnitudes);
        std::transform(magnitudes.begin(), magnitudes.end(), choice.sample.begin(), from_magnitude<V>);
    }
    if (choice.threshold >= 0) {
        return choice.threshold;
    }
    const auto magnitudes = room(workspace.magnitudes, choice.sampled);
    take_sample(dense, magnitudes);
    return sampled_threshold<V>(magnitudes, choice.above);
}

/// Finds the support; false where the residual was not finite.
template <typename V, typename P>
bool choose(const Stages& stages, const Choice<V>& choice, const Compensated<V>& dense, Workspace<V>& workspace,
            PositionScratch<P>& scratch, Span<const P>& support) {
    if (stages.selection == Selection::topk) {
        const std::size_t candidates = topk_scratch(dense.size(), choice.kept);
        const auto positions = room(scratch.positions, choice.kept);
        std::size_t found = 0;
        const bool finite = select_topk(dense, positions, room(scratch.candidates, candidates),
                                        room(workspace.magnitudes, candidates), found);
        support = positions.part(0, found);
        return finite;
    }
    std::size_t count = 0;
    const double threshold = threshold_of(stages, choice, dense, workspace);
    const bool finite = select_above(dense, threshold, scratch.positions, count);
    support = {scratch.positions.data(), count};
    return finite;
}

template <typename P>
Bytes encode_index(IndexId id, Span<const P> positions, std::uint64_t numel, std::vector<std::uint8_t>& payload) {
    // Positions that a sparsifier of ours found are a support, so none of these can fail.
    if (id == IndexId::rice) {
        const auto out = room(payload, rice_capacity(positions.size, numel));
        std::uint64_t bits = 0;
        static_cast<void>(rice_encode(positions, numel, out, bits));
        return out.part(0, (bits + 7) / 8);
    }
    if (id == IndexId::bitmap) {
        const auto out = room(payload, bitmap_size(numel));
        static_cast<void>(bitmap_encode(positions, numel, out));
        return out;
    }
    const auto out = room(payload, positions.size * sizeof(P));
    std::memcpy(out.data, positions.data, out.size);
    return out;
}

template <typename P>
bool decode_index(IndexId id, Bytes payload, std::uint64_t kept, std::uint64_t numel, std::vector<P>& positions) {
    const auto check = id == IndexId::rice     ? rice_check(payload, kept, numel)
                       : id == IndexId::bitmap ? bitmap_check(payload, kept, numel)
                                               : raw_positions_check(payload, kept, numel);
    if (!check.ok()) {
        return false;
    }
    const auto out = room(positions, kept);
    return (id == IndexId::rice     ? rice_decode(payload, numel, out)
            : id == IndexId::bitmap ? bitmap_decode(payload, numel, out)
                                    : raw_positions_decode(payload, numel, out))
        .ok();
}

template <typename V>
Bytes encode_values(const Stages& stages, Span<const V> values, std::uint64_t key, std::vector<std::uint8_t>& payload) {
    const std::size_t size = stages.value == ValueId::raw    ? values.size * sizeof(V)
                             : stages.value == ValueId::qsgd ? qsgd_size(values.size, stages.qsgd)
                                                             : 2 * values.size;
    const auto out = room(payload, size);
    switch (stages.value) {
        case ValueId::raw:
            std::memcpy(out.data, values.data, out.size);
            break;
        case ValueId::fp16:
            fp16_encode(values, out);
            break;
        case ValueId::bf16:
            bf16_encode(values, out);
            break;
        case ValueId::qsgd:
            qsgd_encode(values, stages.qsgd, key, out);
            break;
    }
    return out;
}

template <typename V>
bool decode_values(const Stages& stages, Bytes payload, std::uint64_t kept, std::vector<V>& values) {
    const Status check = stages.value == ValueId::qsgd  ? qsgd_check(payload, kept, stages.qsgd)
                         : stages.value == ValueId::raw ? check_length("raw values", payload, kept * sizeof(V))
                                                        : fp16_check(payload, kept);
    if (!check.ok()) {
        return false;
    }
    const auto out = room(values, kept);
    switch (stages.value) {
        case ValueId::raw:
            std::memcpy(out.data, payload.data, payload.size);
            return true;
        case ValueId::fp16:
            return fp16_decode(payload, out).ok();
        case ValueId::bf16:
            return bf16_decode(payload, out).ok();
        case ValueId::qsgd:
            return qsgd_decode(payload, stages.qsgd, out).ok();
    }
    return false;
}

void append_varint(std::vector<std::uint8_t>& out, std::uint64_t value) {
    for (; value > 0x7f; value >>= 7) {
        out.push_back(static_cast<std::uint8_t>((value & 0x7f) | 0x80));
    }
    out.push_back(static_cast<std::uint8_t>(value));
}

bool take_varint(Bytes& bytes, std::uint64_t& value) {
    value = 0;
    for (unsigned i = 0; i < kLongestVarint && i < bytes.size; ++i) {
        const std::uint8_t byte = bytes[i];
        value |= std::uint64_t{byte & 0x7fu} << (7 * i);
        if (byte < 0x80) {
            bytes = bytes.part(i + 1, bytes.size - i - 1);
            return byte != 0 || i == 0;
        }
    }
    return false;
}

bool take_bytes(Bytes& bytes, std::uint64_t count, Bytes& taken) {
    if (count > bytes.size) {
        return false;
    }
    taken = bytes.part(0, count);
    bytes = bytes.part(count, bytes.size - count);
    return true;
}

FrameFacts append_special(std::uint8_t what, std::vector<std::uint8_t>& out) {
    out.push_back(kSpecial);
    out.push_back(what);
    FrameFacts facts;
    facts.length = 2;
    facts.finite = what != kNotFinite;
    return facts;
}

}  // namespace

template <typename V>
FrameFacts encode_frame(const Stages& stages, Span<const V> gradient, Span<V> residual, const Choice<V>& choice,
                        std::uint64_t key, Workspace<V>& workspace, std::vector<std::uint8_t>& out) {
    if (stages.residual ? !sums_finite<V>(residual, gradient) : !all_finite(gradient)) {
        return append_special(kNotFinite, out);
    }
    const auto dense = stages.residual ? Compensated<V>(residual, gradient) : Compensated<V>(gradient);
    const Span<const V> compensated = dense.values();
    return with_positions(workspace, gradient.size, [&](auto& scratch) {
        using P = typename std::remove_reference_t<decltype(scratch.positions)>::value_type;
        Span<const P> support;
        if (!choose(stages, choice, dense, workspace, scratch, support)) {
            return append_special(kNotFinite, out);
        }
        if (support.size == 0) {
            return append_special(kEmpty, out);
        }
        const auto values = room(workspace.values, support.size);
        const Bytes index = encode_index(stages.index, support, gradient.size, workspace.index_payload);
        static_cast<void>(gather(compensated, support, values));
        const Bytes value = encode_values<V>(stages, values, key, workspace.value_payload);
        if (stages.residual) {
            static_cast<void>(decode_values(stages, value, support.size, workspace.values));
            static_cast<void>(subtract_at<V, P>(residual, support, values));
        }
        const std::size_t start = out.size();
        append_varint(out, static_cast<std::uint64_t>(stages.index));
        append_varint(out, static_cast<std::uint64_t>(stages.value));
        append_varint(out, support.size);
        append_varint(out, index.size);
        append_varint(out, value.size);
        out.insert(out.end(), index.begin(), index.end());
        out.insert(out.end(), value.begin(), value.end());
        FrameFacts facts;
        facts.length = out.size() - start;
        facts.kept = support.size;
        facts.index_bytes = index.size;
        facts.value_bytes = value.size;
        return facts;
    });
}

bool read_frame(const Stages& stages, std::uint64_t numel, Bytes& bundle, FrameView& frame) {
    std::uint64_t index_id = 0;
    std::uint64_t value_id = 0;
    if (!take_varint(bundle, index_id) || !take_varint(bundle, value_id)) {
        return false;
    }
    if (index_id == kSpecial) {
        frame.kind = value_id == kEmpty ? FrameView::Kind::empty : FrameView::Kind::not_finite;
        return value_id == kEmpty || value_id == kNotFinite;
    }
    frame.kind = FrameView::Kind::payloads;
    std::uint64_t index_length = 0;
    std::uint64_t value_length = 0;
    return index_id == static_cast<std::uint64_t>(stages.index) &&
           value_id == static_cast<std::uint64_t>(stages.value) && take_varint(bundle, frame.kept) && 1 <= frame.kept &&
           frame.kept <= numel && take_varint(bundle, index_length) && take_varint(bundle, value_length) &&
           take_bytes(bundle, index_length, frame.index) && take_bytes(bundle, value_length, frame.value);
}

template <typename V>
bool add_frame(const Stages& stages, const FrameView& frame, double factor, Workspace<V>& workspace, Span<V> dense) {
    if (frame.kind == FrameView::Kind::empty) {
        return true;
    }
    return with_positions(workspace, dense.size, [&](auto& scratch) {
        auto& positions = scratch.positions;
        using P = typename std::remove_reference_t<decltype(positions)>::value_type;
        return decode_index(stages.index, frame.index, frame.kept, dense.size, positions) &&
               decode_values(stages, frame.value, frame.kept, workspace.values) &&
               scatter_add<V, P>(dense, room(positions, frame.kept), room(workspace.values, frame.kept), factor).ok();
    });
}

template FrameFacts encode_frame(const Stages&, Span<const float>, Span<float>, const Choice<float>&, std::uint64_t,
                                 Workspace<float>&, std::vector<std::uint8_t>&);
template FrameFacts encode_frame(const Stages&, Span<const double>, Span<double>, const Choice<double>&, std::uint64_t,
                                 Workspace<double>&, std::vector<std::uint8_t>&);
template bool add_frame(const Stages&, const FrameView&, double, Workspace<float>&, Span<float>);
template bool add_frame(const Stages&, const FrameView&, double, Workspace<double>&, Span<double>);

}  // namespace deepreduce
