#include <pybind11/stl.h>

#include "binding.hpp"
#include "binding_results.hpp"
#include "frame_batch.hpp"

namespace deepreduce::binding {
namespace {

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

/// From (kept,) for top-k, and (threshold, sampled, above, sample or None) for dropping.
AnyChoice to_choice(Selection selection, py::handle given, const Dense& gradient) {
    AnyChoice choice;
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
    std::vector<EncodeJob> jobs(count);
    for (std::size_t i = 0; i < count; ++i) {
        EncodeJob& job = jobs[i];
        job.gradient = to_dense(gradients[i], "gradient", false);
        job.key = keys[i];
        if (stages.residual) {
            job.residual = to_dense(residuals[i], "residual", true);
            if (job.residual.single.size != job.gradient.single.size ||
                job.residual.twice.size != job.gradient.twice.size) {
                refuse("residual: size or dtype differs from the gradient's");
            }
        }
        if (chosen) {
            job.choice = to_choice(stages.selection, choices_given[i], job.gradient);
        }
    }
    py::array_t<std::int64_t> facts({static_cast<py::ssize_t>(count), static_cast<py::ssize_t>(kEncodeFacts)});
    const auto rows = fill(facts);
    py::bytes body;
    const Reserve reserve = [](void* context, std::size_t size) {
        const py::gil_scoped_acquire acquired;
        Span<std::uint8_t> out;
        *static_cast<py::bytes*>(context) = new_bytes(size, out);
        return out.data;
    };
    run([&] { encode_batch(stages, {jobs.data(), count}, threads, rows, reserve, &body); });
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
    std::vector<Bytes> bytes;
    for (const auto& body : bodies) {
        payloads.push_back(std::make_unique<Payload>(body));
        bytes.push_back(payloads.back()->bytes());
    }
    py::array_t<std::int64_t> facts({static_cast<py::ssize_t>(count), static_cast<py::ssize_t>(kDecodeFacts)});
    const auto rows = fill(facts);
    const bool sound = run([&] {
        return decode_batch(stages, {bytes.data(), bytes.size()}, {numels.data(), count}, {dense.data(), count}, factor,
                            threads, rows);
    });
    return sound ? py::object(facts) : py::none();
}

/// Where `FrameKernels` lie in memory.
std::uintptr_t frame_kernels_address() {
    static const FrameKernels kernels{kFrameKernelsLayout, &encode_batch, &decode_batch};
    return reinterpret_cast<std::uintptr_t>(&kernels);
}

}  // namespace

void bind_frames(py::module_& module) {
    module.def("encode_frames", &encode_frames, py::arg("stages"), py::arg("gradients"), py::arg("residuals"),
               py::arg("choices"), py::arg("keys"), py::arg("threads"));
    module.def("decode_frames", &decode_frames, py::arg("stages"), py::arg("bodies"), py::arg("numels"),
               py::arg("outputs"), py::arg("factor"), py::arg("threads"));
    module.def("frame_kernels_address", &frame_kernels_address);
}

}  // namespace deepreduce::binding
