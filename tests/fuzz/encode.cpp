// Whole frames from dense gradients and back. An input is the stages, one byte for the value type, two each for numel,
// kept, the size of the sample, the number above it and the size of the sample asked for, eight each for the key and a
// mask, and floats: the gradient and then the residual repeat them, each time with other bits under the mask, so that
// few bytes make many different values.
#include <cmath>
#include <functional>

#include "frames.hpp"
#include "random.hpp"
#include "select.hpp"
#include "take_stages.hpp"

namespace deepreduce::fuzz {
namespace {

template <typename V>
struct Case {
    Stages stages;
    Choice<V> choice;
    std::size_t sample;
    std::uint64_t key;
    Exact<V> gradient;
    Exact<V> residual;
};

template <typename V>
Case<V> take_case(Input input, const Stages& stages) {
    const std::size_t numel = take_numel(input);
    Choice<V> choice;
    choice.kept = input.take(2) % (numel + 1);
    choice.threshold = stages.threshold;
    choice.sampled = 1 + input.take(2) % numel;
    choice.above = input.take(2) % (numel + 1);
    const std::size_t sample = input.take(2) % (numel + 1);
    const std::uint64_t key = input.take(8);
    const std::uint64_t mask = input.take(8);
    const auto pattern = input.rest();
    const std::size_t words = std::max<std::size_t>(1, pattern.size() / sizeof(V));
    Case<V> made{stages, choice, sample, key, Exact<V>(numel), Exact<V>(numel)};
    for (std::size_t i = 0; i < 2 * numel; ++i) {
        Bits<V> bits = pattern.size() < sizeof(V) ? 0 : load<Bits<V>>(pattern.view().data + i % words * sizeof(V));
        bits ^= static_cast<Bits<V>>(random_u64(0, i / words) & mask);
        (i < numel ? made.gradient.span()[i] : made.residual.span()[i - numel]) = load<V>(&bits);
    }
    return made;
}

template <typename V>
bool all(Span<const V> values, bool (*holds)(V)) {
    return std::all_of(values.begin(), values.end(), holds);
}

template <typename V>
Exact<V> compensated(const Case<V>& given) {
    Exact<V> sums(given.gradient.view());
    for (std::size_t i = 0; given.stages.residual && i < sums.size(); ++i) {
        sums.span()[i] = given.residual.view()[i] + given.gradient.view()[i];
    }
    return sums;
}

template <typename V>
std::vector<V> expected_sample(Span<const V> values, std::size_t count) {
    std::vector<V> sample(count);
    for (std::size_t i = 0; i < count; ++i) {
        sample[i] = std::abs(values[sample_position(values.size, count, i)]);
    }
    return sample;
}

template <typename V>
V expected_limit(const Case<V>& given, Span<const V> values) {
    const Choice<V>& choice = given.choice;
    if (given.stages.selection == Selection::nonzero) {
        return 0;
    }
    if (given.stages.selection == Selection::above || choice.threshold >= 0) {
        return static_cast<V>(given.stages.threshold);
    }
    auto sample = expected_sample(values, choice.sampled);
    std::sort(sample.begin(), sample.end(), std::greater<V>());
    return choice.above < sample.size() ? sample[choice.above] : 0;
}

template <typename V>
std::uint64_t expected_kept(const Case<V>& given, Span<const V> values) {
    if (given.stages.selection == Selection::topk) {
        return given.choice.kept;
    }
    const V limit = expected_limit(given, values);
    return static_cast<std::uint64_t>(
        std::count_if(values.begin(), values.end(), [=](V value) { return std::abs(value) > limit; }));
}

template <typename V>
Exact<V> decode(const Case<V>& given, Bytes frame, std::uint64_t kept) {
    auto dense = Exact<V>::zeros(given.gradient.size());
    const Exact<std::uint8_t> copy(frame);
    Bytes rest = copy.view();
    FrameView view;
    Workspace<V> workspace;
    require(read_frame(given.stages, dense.size(), rest, view) && rest.size == 0, "a frame of ours is read");
    require(view.kind != FrameView::Kind::not_finite && view.kept == kept, "it says what was kept");
    require(add_frame(given.stages, view, 1.0, workspace, dense.span()), "a frame of ours is accepted");
    return dense;
}

/// Zeros are equal whatever their sign: a dense gradient that is added to loses it.
template <typename V>
void require_feedback(Span<const V> sums, Span<const V> decoded, Span<const V> residual, bool exact) {
    for (std::size_t i = 0; i < sums.size; ++i) {
        require(is_finite(residual[i]), "the residual stays finite");
        require(residual[i] == sums[i] - decoded[i], "the residual is what was not sent");
        require(!exact || decoded[i] + residual[i] == sums[i], "compensated = decoded + new residual");
    }
}

/// For exact values, where what was sent can be told by it.
template <typename V>
void require_largest(Span<const V> sums, Span<const V> decoded) {
    V smallest_sent = std::numeric_limits<V>::infinity();
    V largest_left = 0;
    for (std::size_t i = 0; i < sums.size; ++i) {
        require(decoded[i] == sums[i] || decoded[i] == 0, "exact values are sent as they are");
        if (decoded[i] != 0) {
            smallest_sent = std::min(smallest_sent, std::abs(sums[i]));
        } else {
            largest_left = std::max(largest_left, std::abs(sums[i]));
        }
    }
    require(largest_left <= smallest_sent, "the largest magnitudes are sent");
}

template <typename V>
struct Encoded {
    FrameFacts facts;
    std::vector<std::uint8_t> frame;
    Exact<V> residual;
    Exact<V> sample;
};

template <typename V>
Encoded<V> encode(const Case<V>& given, Workspace<V>& workspace) {
    Encoded<V> made{{}, {}, Exact<V>(given.residual.view()), Exact<V>(given.sample)};
    const Exact<V> gradient(given.gradient.view());
    const Span<V> residual = given.stages.residual ? made.residual.span() : Span<V>{};
    Choice<V> choice = given.choice;
    choice.sample = made.sample.span();
    made.facts = encode_frame(given.stages, gradient.view(), residual, choice, given.key, workspace, made.frame);
    require(same_bytes(gradient.view(), given.gradient.view()), "the gradient is untouched");
    return made;
}

template <typename V>
void test(const Case<V>& given) {
    Workspace<V> workspace;
    const Encoded<V> made = encode(given, workspace);
    const Encoded<V> again = encode(given, workspace);
    const Bytes frame{made.frame.data(), made.frame.size()};
    require(made.frame == again.frame, "scratch space has no memory");
    require(same_bytes(made.residual.view(), again.residual.view()), "scratch space has no memory");
    require(made.facts.length == frame.size, "the length told is that of the frame");
    const Exact<V> sums = compensated(given);
    const bool finite = all(sums.view(), is_finite<V>);
    require((made.facts.finite != 0) == finite, "what is not finite is told");
    if (!finite) {
        require(made.frame == std::vector<std::uint8_t>{0, 1}, "what is not finite is a special frame");
        require(!all(given.residual.view(), is_finite<V>) || same_bytes(made.residual.view(), given.residual.view()),
                "what is not finite leaves the residual");
        return;
    }
    require(made.facts.kept == expected_kept(given, sums.view()), "as many are kept as the sparsifier says");
    if (given.stages.selection == Selection::dropping) {
        const auto sample = expected_sample(sums.view(), given.sample);
        require(std::equal(sample.begin(), sample.end(), made.sample.view().begin()), "the sample is of magnitudes");
    }
    const Exact<V> decoded = decode(given, frame, made.facts.kept);
    const bool exact = given.stages.value == ValueId::raw;
    if (given.stages.residual) {
        require_feedback(sums.view(), decoded.view(), made.residual.view(), exact);
    }
    if (exact) {
        require_largest(sums.view(), decoded.view());
    }
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace deepreduce::fuzz;
    Input input(data, size);
    const auto stages = take_stages(input);
    if (input.take(1) % 2 != 0) {
        test(take_case<double>(input, stages));
    } else {
        test(take_case<float>(input, stages));
    }
    return 0;
}
