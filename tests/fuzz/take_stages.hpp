// Stages off the front of an input, for the targets that run whole frames.
#pragma once

#include "frames.hpp"
#include "input.hpp"

namespace deepreduce::fuzz {

/// Fields of 1, 1, 1, 1, 1, 3, 1 and 8 bytes. Any double is a threshold here, NaN too.
inline Stages take_stages(Input& input) {
    constexpr IndexId kIndices[] = {IndexId::raw, IndexId::bitmap, IndexId::rice};
    constexpr ValueId kValues[] = {ValueId::raw, ValueId::fp16, ValueId::bf16, ValueId::qsgd};
    Stages stages{};
    stages.selection = static_cast<Selection>(input.take(1) % 4);
    stages.index = kIndices[input.take(1) % 3];
    stages.value = kValues[input.take(1) % 4];
    stages.residual = input.take(1) % 2 != 0;
    stages.qsgd.bits = static_cast<unsigned>(2 + input.take(1) % 15);
    stages.qsgd.bucket = 1 + input.take(3) % (1u << 20);
    const std::uint64_t threshold = input.take(8);
    stages.threshold = load<double>(&threshold);
    return stages;
}

constexpr std::size_t kMaxDense = 640;

inline std::size_t take_numel(Input& input) { return 1 + input.take(2) % kMaxDense; }

}  // namespace deepreduce::fuzz
