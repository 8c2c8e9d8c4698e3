// The body of a bundle: FORMAT.md, 3, all stages. An input is the stages, a byte each for the value type, the factor
// and the number of frames, their numels in two bytes each, and the body.
#include <array>

#include "frames.hpp"
#include "take_stages.hpp"

namespace deepreduce::fuzz {
namespace {

constexpr std::size_t kMaxFrames = 4;

void append_varint(std::vector<std::uint8_t>& out, std::uint64_t value) {
    while (value >= 0x80) {
        out.push_back(static_cast<std::uint8_t>(value % 0x80 + 0x80));
        value /= 0x80;
    }
    out.push_back(static_cast<std::uint8_t>(value));
}

/// The header has one form only, so that what was read can be written again.
std::vector<std::uint8_t> write_again(const Stages& stages, const FrameView& frame) {
    if (frame.kind != FrameView::Kind::payloads) {
        return {0, static_cast<std::uint8_t>(frame.kind == FrameView::Kind::empty ? 0 : 1)};
    }
    std::vector<std::uint8_t> out;
    append_varint(out, static_cast<std::uint64_t>(stages.index));
    append_varint(out, static_cast<std::uint64_t>(stages.value));
    append_varint(out, frame.kept);
    append_varint(out, frame.index.size);
    append_varint(out, frame.value.size);
    out.insert(out.end(), frame.index.begin(), frame.index.end());
    out.insert(out.end(), frame.value.begin(), frame.value.end());
    return out;
}

FrameView read(const Stages& stages, std::size_t numel, Bytes& rest, bool& sound) {
    const Bytes before = rest;
    FrameView frame;
    sound = read_frame(stages, numel, rest, frame);
    if (sound) {
        const auto written = write_again(stages, frame);
        require(rest.end() == before.end() && rest.size <= before.size, "a frame is taken from the front");
        require(same_bytes<std::uint8_t>({written.data(), written.size()}, before.part(0, before.size - rest.size)),
                "a frame that was read is written as it came");
        require(frame.kind != FrameView::Kind::payloads || (frame.kept >= 1 && frame.kept <= numel),
                "kept is 1 to numel");
    }
    return frame;
}

/// With scratch space of its own, whose vectors are exact, and once more with that of the frames before.
template <typename V>
void add(const Stages& stages, const FrameView& frame, std::size_t numel, double factor, Workspace<V>& used) {
    auto dense = Exact<V>::zeros(numel);
    auto again = Exact<V>::zeros(numel);
    Workspace<V> fresh;
    const bool sound = add_frame(stages, frame, factor, fresh, dense.span());
    require(add_frame(stages, frame, factor, used, again.span()) == sound, "scratch space has no memory");
    if (sound) {
        require(same_bytes(dense.view(), again.view()), "scratch space has no memory");
        const auto zeros = static_cast<std::size_t>(std::count(again.view().begin(), again.view().end(), V{0}));
        require(numel - zeros <= frame.kept, "no more elements change than were kept");
    }
}

template <typename V>
void test(Input input, const Stages& stages) {
    constexpr std::array<double, 3> kFactors = {1.0, 0.5, 1.0 / 3};
    const double factor = kFactors[input.take(1) % kFactors.size()];
    std::vector<std::size_t> numels(1 + input.take(1) % kMaxFrames);
    for (auto& numel : numels) {
        numel = take_numel(input);
    }
    const auto body = input.rest();
    Bytes rest = body.view();
    std::vector<FrameView> frames;
    for (const std::size_t numel : numels) {
        bool sound = false;
        frames.push_back(read(stages, numel, rest, sound));
        if (!sound) {
            return;
        }
    }
    Workspace<V> used;
    for (std::size_t i = 0; i < numels.size(); ++i) {
        if (frames[i].kind != FrameView::Kind::not_finite) {
            add(stages, frames[i], numels[i], factor, used);
        }
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    deepreduce::fuzz::Input input(data, size);
    const auto stages = deepreduce::fuzz::take_stages(input);
    if (input.take(1) % 2 != 0) {
        deepreduce::fuzz::test<double>(input, stages);
    } else {
        deepreduce::fuzz::test<float>(input, stages);
    }
    return 0;
}
