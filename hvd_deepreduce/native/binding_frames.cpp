#include <pybind11/stl.h>

#include <chrono>
#include <limits>

#include "binding.hpp"
#include "binding_results.hpp"
#include "frames.hpp"
#include "parallel.hpp"
#include "workspaces.hpp"

namespace deepreduce::binding {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMaxThreads = 256;
constexpr py::ssize_t kFacts = 6;

std::int64_t nanoseconds_since(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

/// A dense gradient of either value type.
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

Dense to_dense(py::handle object, const char* name, bool written) {
    return with_values(object, name, [&](const py::array& array, auto value) {
        using V = decltype(value);
        const auto read = view<V>(array);
        const Span<V> span = written ? writeable<V>(array, name) : Span<V>{const_cast<V*>(read.data), read.size};
        if (span.size == 0) {
            refuse(std::string(name) + ": an empty array");
        }
        Dense dense;
        if constexpr (sizeof(V) == sizeof(float)) {
            dense.single = span;
        } else {
            dense.twice = span;
        }
        return dense;
    });
}

/// From (sparsifier, threshold, index id, value id, bits, bucket, residual).
Stages to_stages(const py::tuple& given) {
    if (given.size() != 7) {
        refuse("stages: a tuple of 7 is needed");
    }
    Stages stages{};
    const std::string selection = text_of(given[0]);
    if (selection == "none") {
        stages.selection = Selection::nonzero;
    } else if (selection == "topk") {
        stages.selection = Selection::topk;
    } else if (selection == "threshold") {
        stages.selection = Selection::above;
    } else if (selection == "dropping") {
        stages.selection = Selection::dropping;
    } else {
        refuse("stages: sparsifier " + selection + "; allowed are none, topk, threshold, dropping");
    }
    stages.threshold = given[1].cast<double>();
    const std::uint64_t index = to_integer(given[2], "index id", 1, 4);
    if (index == 2) {
        refuse("stages: index id 2; allowed are 1, 3, 4");
    }
    stages.index = static_cast<IndexId>(index);
    stages.value = static_cast<ValueId>(to_integer(given[3], "value id", 1, 4));
    stages.qsgd = {static_cast<unsigned>(to_integer(given[4], "bits", 2, 16)),
                   to_integer(given[5], "bucket", 1, std::uint64_t{1} << 20)};
    stages.residual = given[6].cast<bool>();
    return stages;
}

/// A Choice whose sample is still an array of either value type.
struct ChoiceGiven {
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

/// From (kept,) for top-k, and (threshold, sampled, above, sample or None) for dropping.
ChoiceGiven to_choice(Selection selection, py::handle given, const Dense& gradient) {
    ChoiceGiven choice;
    const std::size_t numel = gradient.numel();
    if (selection == Selection::topk) {
        choice.kept = to_integer(given.cast<py::tuple>()[0], "kept", 0, numel);
    } else if (selection == Selection::dropping) {
        const auto parts = given.cast<py::tuple>();
        choice.threshold = parts[0].cast<double>();
        choice.sampled = to_integer(parts[1], "sampled", 1, numel);
        choice.above = to_integer(parts[2], "above", 0, numel);
        if (!parts[3].is_none()) {
            choice.sample = to_dense(parts[3], "sample", true);
            if (choice.sample.numel() > numel || choice.sample.is_single() != gradient.is_single()) {
                refuse("sample: larger than the gradient, or of another dtype");
            }
        }
    }
    return choice;
}

py::tuple encode_frames(const py::tuple& stages_given, const py::list& gradients, const py::list& residuals,
                        const py::list& choices_given, const std::vector<std::uint64_t>& keys,
                        const py::object& threads_given) {
    const Stages stages = to_stages(stages_given);
    const std::size_t count = gradients.size();
    const auto threads = static_cast<unsigned>(to_integer(threads_given, "threads", 1, kMaxThreads));
    const bool chosen = stages.selection == Selection::topk || stages.selection == Selection::dropping;
    if (choices_given.size() != (chosen ? count : 0) || keys.size() != count ||
        residuals.size() != (stages.residual ? count : 0)) {
        refuse("encode_frames: as many residuals, choices and keys as gradients are needed");
    }
    std::vector<Dense> dense(count);
    std::vector<Dense> memory(count);
    std::vector<ChoiceGiven> choices(count);
    for (std::size_t i = 0; i < count; ++i) {
        dense[i] = to_dense(gradients[i], "gradient", false);
        if (stages.residual) {
            memory[i] = to_dense(residuals[i], "residual", true);
            if (memory[i].single.size != dense[i].single.size || memory[i].twice.size != dense[i].twice.size) {
                refuse("residual: size or dtype differs from the gradient's");
            }
        }
        if (chosen) {
            choices[i] = to_choice(stages.selection, choices_given[i], dense[i]);
        }
    }
    struct Place {
        unsigned worker = 0;
        std::size_t start = 0;
    };
    std::vector<Place> places(count);
    Workers workers(threads);
    py::array_t<std::int64_t> facts({static_cast<py::ssize_t>(count), kFacts});
    std::int64_t* rows = facts.mutable_data();
    run([&] {
        run_jobs(count, threads, [&](std::size_t i, unsigned worker) {
            const auto start = Clock::now();
            Workspaces& workspace = workers[worker];
            places[i] = {worker, workspace.frames.size()};
            const FrameFacts found = with_dense(dense[i], [&](auto gradient) {
                using V = std::remove_reference_t<decltype(gradient[0])>;
                return encode_frame<V>(stages, gradient, of<V>(memory[i]), choices[i].as<V>(), keys[i],
                                       workspace.of(gradient), workspace.frames);
            });
            const std::int64_t row[kFacts] = {
                static_cast<std::int64_t>(found.length),      static_cast<std::int64_t>(found.kept),
                static_cast<std::int64_t>(found.index_bytes), static_cast<std::int64_t>(found.value_bytes),
                static_cast<std::int64_t>(found.finite),      nanoseconds_since(start)};
            std::copy(row, row + kFacts, rows + static_cast<py::ssize_t>(i) * kFacts);
        });
    });
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i) {
        size += static_cast<std::size_t>(rows[static_cast<py::ssize_t>(i) * kFacts]);
    }
    Span<std::uint8_t> out;
    py::bytes body = new_bytes(size, out);
    std::uint8_t* end = out.data;
    for (std::size_t i = 0; i < count; ++i) {
        const auto frame = workers[places[i].worker].frames.begin() + static_cast<std::ptrdiff_t>(places[i].start);
        end = std::copy_n(frame, rows[static_cast<py::ssize_t>(i) * kFacts], end);
    }
    return py::make_tuple(body, facts);
}

py::object decode_frames(const py::tuple& stages_given, const py::list& bodies,
                         const std::vector<std::uint64_t>& numels, const py::list& outputs, double factor,
                         const py::object& threads_given) {
    const Stages stages = to_stages(stages_given);
    const std::size_t count = numels.size();
    const auto threads = static_cast<unsigned>(to_integer(threads_given, "threads", 1, kMaxThreads));
    if (outputs.size() != count) {
        refuse("decode_frames: as many outputs as numels are needed");
    }
    std::vector<Dense> dense(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (!outputs[i].is_none()) {
            dense[i] = to_dense(outputs[i], "output", true);
            if (dense[i].numel() != numels[i]) {
                refuse("output: " + std::to_string(dense[i].numel()) + " elements; numel is " +
                       std::to_string(numels[i]));
            }
        }
    }
    std::vector<std::unique_ptr<Payload>> payloads;
    std::vector<std::vector<FrameView>> frames;
    for (const auto& body : bodies) {
        payloads.push_back(std::make_unique<Payload>(body));
        Bytes rest = payloads.back()->bytes();
        std::vector<FrameView> views(count);
        for (std::size_t i = 0; i < count; ++i) {
            if (!read_frame(stages, numels[i], rest, views[i])) {
                return py::none();
            }
        }
        if (std::any_of(rest.begin(), rest.end(), [](std::uint8_t byte) { return byte != 0; })) {
            return py::none();
        }
        frames.push_back(std::move(views));
    }
    py::array_t<std::int64_t> facts({static_cast<py::ssize_t>(count), py::ssize_t{2}});
    std::int64_t* rows = facts.mutable_data();
    std::atomic<bool> sound{true};
    Workers workers(threads);
    run([&] {
        run_jobs(count, threads, [&](std::size_t i, unsigned worker) {
            const auto start = Clock::now();
            bool finite = true;
            if (dense[i].numel() != 0) {
                with_dense(dense[i], [&](auto out) {
                    using V = std::remove_reference_t<decltype(out[0])>;
                    std::fill(out.begin(), out.end(), V{0});
                    for (const auto& views : frames) {
                        if (views[i].kind == FrameView::Kind::not_finite) {
                            finite = false;
                        } else if (!add_frame<V>(stages, views[i], factor, workers[worker].of(out), out)) {
                            sound = false;
                        }
                    }
                    if (!finite) {
                        std::fill(out.begin(), out.end(), std::numeric_limits<V>::quiet_NaN());
                    }
                });
            }
            rows[2 * i] = finite;
            rows[2 * i + 1] = nanoseconds_since(start);
        });
    });
    return sound ? py::object(facts) : py::none();
}

}  // namespace

void bind_frames(py::module_& module) {
    module.def("encode_frames", &encode_frames, py::arg("stages"), py::arg("gradients"), py::arg("residuals"),
               py::arg("choices"), py::arg("keys"), py::arg("threads"));
    module.def("decode_frames", &decode_frames, py::arg("stages"), py::arg("bodies"), py::arg("numels"),
               py::arg("outputs"), py::arg("factor"), py::arg("threads"));
}

}  // namespace deepreduce::binding
