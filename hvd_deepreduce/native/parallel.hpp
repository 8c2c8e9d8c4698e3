// Runs independent jobs on a few threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace deepreduce {

/// Calls job(i, worker) for every i below `count`, each once, on up to `threads` threads; worker is below `threads`.
/// What the jobs write must not depend on who runs them or when. Jobs must not throw.
template <typename Job>
void run_jobs(std::size_t count, unsigned threads, Job job) {
    std::atomic<std::size_t> next{0};
    const auto work = [&](unsigned worker) {
        for (std::size_t i = next++; i < count; i = next++) {
            job(i, worker);
        }
    };
    std::vector<std::thread> others;
    for (unsigned worker = 1; worker < threads && worker < count; ++worker) {
        others.emplace_back(work, worker);
    }
    work(0);
    for (auto& other : others) {
        other.join();
    }
}

}  // namespace deepreduce
