// What both TensorFlow ops need: variables, a bucket's attributes, and what Python is told. Part of ops.cpp only.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "bundle.hpp"
#include "frame_batch.hpp"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace deepreduce {
namespace {

namespace tf = tensorflow;
using Integers = std::vector<tf::int64>;

const FrameKernels* kernels = nullptr;

// Columns of a bucket's facts, one row for each member: native_coder.py has the same table.
enum Fact { kSteps, kKept, kNotFinite, kIndexBytes, kValueBytes, kSentBytes, kEncodeNs, kDecodeNs, kFacts };
// And of one more row, for the bucket.
enum BucketFact { kCollectives, kBundleBytes, kSentAt, kWaitNs, kRound, kProbes };

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// What Python and the ops tell one another of a compressor while a graph runs.
struct Session {
    std::string failure;
    struct UnderWay {
        std::int64_t step;
        std::int64_t since;
    };
    std::map<std::int64_t, UnderWay> under_way;
};

std::mutex sessions_mutex;

Session& session(std::int64_t number) {
    static auto* sessions = new std::map<std::int64_t, Session>;
    return (*sessions)[number];
}

Stages to_stages(const Integers& given) {
    Stages stages{};
    stages.selection = static_cast<Selection>(given[0]);
    std::memcpy(&stages.threshold, &given[1], sizeof stages.threshold);
    stages.index = static_cast<IndexId>(given[2]);
    stages.value = static_cast<ValueId>(given[3]);
    stages.qsgd = {static_cast<unsigned>(given[4]), static_cast<std::uint64_t>(given[5])};
    stages.residual = given[6] != 0;
    return stages;
}

Dense to_dense(const tf::Tensor& tensor) {
    const auto size = static_cast<std::size_t>(tensor.NumElements());
    Dense dense;
    if (tensor.dtype() == tf::DT_FLOAT) {
        dense.single = {const_cast<float*>(tensor.flat<float>().data()), size};
    } else {
        dense.twice = {const_cast<double*>(tensor.flat<double>().data()), size};
    }
    return dense;
}

/// A variable, locked, whose content nobody else sees change.
class Locked {
  public:
    tf::Status open(tf::OpKernelContext* context, const tf::ResourceHandle& handle) {
        TF_RETURN_IF_ERROR(tf::LookupResource(context, handle, &variable_));
        variable_->mu()->lock();
        locked_ = true;
        tf::Tensor* tensor = variable_->tensor();
        if (!tensor->RefCountIsOne()) {
            tf::Tensor copy;
            TF_RETURN_IF_ERROR(context->allocate_temp(tensor->dtype(), tensor->shape(), &copy));
            std::memcpy(copy.data(), tensor->data(), tensor->TotalBytes());
            *tensor = copy;
        }
        return tf::OkStatus();
    }
    Locked() = default;
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() {
        if (locked_) {
            variable_->mu()->unlock();
        }
    }

    tf::Tensor& tensor() { return *variable_->tensor(); }

  private:
    tf::core::RefCountPtr<tf::Var> variable_;
    bool locked_ = false;
};

/// What both ops know of their bucket.
struct Common {
    std::int64_t session;
    std::int64_t bucket;
    std::int64_t size;
    std::int64_t threads;
    std::uint32_t fingerprint;
    Integers members;
    Stages stages;

    tf::Status read(tf::OpKernelConstruction* context) {
        Integers given;
        std::int64_t number = 0;
        TF_RETURN_IF_ERROR(context->GetAttr("session", &session));
        TF_RETURN_IF_ERROR(context->GetAttr("bucket", &bucket));
        TF_RETURN_IF_ERROR(context->GetAttr("size", &size));
        TF_RETURN_IF_ERROR(context->GetAttr("threads", &threads));
        TF_RETURN_IF_ERROR(context->GetAttr("fingerprint", &number));
        TF_RETURN_IF_ERROR(context->GetAttr("members", &members));
        TF_RETURN_IF_ERROR(context->GetAttr("stages", &given));
        fingerprint = static_cast<std::uint32_t>(number);
        stages = to_stages(given);
        return kernels ? tf::OkStatus() : tf::errors::FailedPrecondition("DeepReduce: no kernels were handed over");
    }
};

}  // namespace
}  // namespace deepreduce
