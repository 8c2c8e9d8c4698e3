#include "frame_batch.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "parallel.hpp"
#include "workspaces.hpp"

namespace deepreduce {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t nanoseconds_since(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

}  // namespace

void encode_batch(const Stages& stages, Span<const EncodeJob> jobs, unsigned threads, Span<std::int64_t> facts,
                  Reserve reserve, void* context) {
    struct Place {
        unsigned worker = 0;
        std::size_t start = 0;
    };
    std::vector<Place> places(jobs.size);
    Workers workers(threads);
    run_jobs(jobs.size, threads, [&](std::size_t i, unsigned worker) {
        const auto start = Clock::now();
        Workspaces& workspace = workers[worker];
        const EncodeJob& job = jobs[i];
        places[i] = {worker, workspace.frames.size()};
        const FrameFacts found = with_dense(job.gradient, [&](auto gradient) {
            using V = std::remove_reference_t<decltype(gradient[0])>;
            return encode_frame<V>(stages, gradient, of<V>(job.residual), job.choice.as<V>(), job.key,
                                   workspace.of(gradient), workspace.frames);
        });
        const std::int64_t row[kEncodeFacts] = {
            static_cast<std::int64_t>(found.length),      static_cast<std::int64_t>(found.kept),
            static_cast<std::int64_t>(found.index_bytes), static_cast<std::int64_t>(found.value_bytes),
            static_cast<std::int64_t>(found.finite),      nanoseconds_since(start)};
        std::copy(row, row + kEncodeFacts, facts.begin() + i * kEncodeFacts);
    });
    std::size_t size = 0;
    for (std::size_t i = 0; i < jobs.size; ++i) {
        size += static_cast<std::size_t>(facts[i * kEncodeFacts]);
    }
    std::uint8_t* end = reserve(context, size);
    for (std::size_t i = 0; i < jobs.size; ++i) {
        const auto frame = workers[places[i].worker].frames.begin() + static_cast<std::ptrdiff_t>(places[i].start);
        end = std::copy_n(frame, facts[i * kEncodeFacts], end);
    }
}

bool decode_batch(const Stages& stages, Span<const Bytes> bodies, Span<const std::uint64_t> numels,
                  Span<const Dense> outputs, double factor, unsigned threads, Span<std::int64_t> facts) {
    std::vector<std::vector<FrameView>> frames;
    for (Bytes rest : bodies) {
        std::vector<FrameView> views(numels.size);
        for (std::size_t i = 0; i < numels.size; ++i) {
            if (!read_frame(stages, numels[i], rest, views[i])) {
                return false;
            }
        }
        if (std::any_of(rest.begin(), rest.end(), [](std::uint8_t byte) { return byte != 0; })) {
            return false;
        }
        frames.push_back(std::move(views));
    }
    std::atomic<bool> sound{true};
    Workers workers(threads);
    run_jobs(numels.size, threads, [&](std::size_t i, unsigned worker) {
        const auto start = Clock::now();
        bool finite = true;
        if (outputs[i].numel() != 0) {
            with_dense(outputs[i], [&](auto out) {
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
        facts[kDecodeFacts * i] = finite;
        facts[kDecodeFacts * i + 1] = nanoseconds_since(start);
    });
    return sound;
}

}  // namespace deepreduce
