// Scratch space that outlives a call.
#pragma once

#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "frames.hpp"

namespace deepreduce {

/// One thread's, for either value type.
struct Workspaces {
    Workspace<float> single;
    Workspace<double> twice;

    /// Frames, one after the other.
    std::vector<std::uint8_t> frames;

    Workspace<float>& of(Span<float>) { return single; }
    Workspace<double>& of(Span<double>) { return twice; }
};

/// Workspaces that were used before: their memory is there already, and asking the system for it anew would take longer
/// than some kernels do.
class WorkspacePool {
  public:
    std::vector<std::unique_ptr<Workspaces>> take(unsigned count) {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::vector<std::unique_ptr<Workspaces>> taken;
        for (unsigned i = 0; i < count; ++i) {
            if (unused_.empty()) {
                taken.push_back(std::make_unique<Workspaces>());
            } else {
                taken.push_back(std::move(unused_.back()));
                unused_.pop_back();
            }
        }
        return taken;
    }

    void give_back(std::vector<std::unique_ptr<Workspaces>>&& taken) {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::move(taken.begin(), taken.end(), std::back_inserter(unused_));
    }

  private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspaces>> unused_;
};

/// One thread's share of the jobs of a call.
class Workers {
  public:
    explicit Workers(unsigned threads) : workspaces_(pool().take(threads)) {
        for (const auto& one : workspaces_) {
            one->frames.clear();
        }
    }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    ~Workers() { pool().give_back(std::move(workspaces_)); }

    Workspaces& operator[](unsigned worker) { return *workspaces_[worker]; }

  private:
    static WorkspacePool& pool() {
        static auto* pool = new WorkspacePool;  // outlives whatever thread is still at work when the process ends
        return *pool;
    }

    std::vector<std::unique_ptr<Workspaces>> workspaces_;
};

}  // namespace deepreduce
