// TensorFlow ops that encode and decode a bucket without Python. The kernels are those of `hvd_deepreduce._native`,
// which hands over their addresses; so frames are equal byte for byte, and this file is all that is compiled for a
// TensorFlow.
#include "decode_op.hpp"
#include "encode_op.hpp"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace deepreduce {
namespace {

using tf::shape_inference::InferenceContext;

REGISTER_OP("DeepReduceEncode")
    .Input("trouble: string")
    .Input("round: int64")
    .Input("steps: resource")
    .Input("facts: resource")
    .Input("last: resource")
    .Input("gradients: T")
    .Input("residuals: residual_count * resource")
    .Output("bundle: uint8")
    .Output("step: int64")
    .Attr("T: list({float, double})")
    .Attr("residual_count: int >= 0")
    .Attr("session: int")
    .Attr("bucket: int")
    .Attr("size: int")
    .Attr("threads: int")
    .Attr("fingerprint: int")
    .Attr("members: list(int)")
    .Attr("stages: list(int)")
    .Attr("rank: int")
    .Attr("count: int")
    .Attr("choices: list(int)")
    .Attr("names: list(string)")
    .Attr("stochastic: bool")
    .Attr("seed: int")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* context) {
        context->set_output(0, context->Vector(InferenceContext::kUnknownDim));
        context->set_output(1, context->Scalar());
        return tf::OkStatus();
    });

REGISTER_OP("DeepReduceDecode")
    .Input("gathered: uint8")
    .Input("step: int64")
    .Input("facts: resource")
    .Output("flats: T")
    .Output("sound: bool")
    .Attr("T: list({float, double})")
    .Attr("session: int")
    .Attr("bucket: int")
    .Attr("size: int")
    .Attr("threads: int")
    .Attr("fingerprint: int")
    .Attr("members: list(int)")
    .Attr("stages: list(int)")
    .Attr("numels: list(int)")
    .Attr("factor: int")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* context) {
        Integers members;
        Integers numels;
        TF_RETURN_IF_ERROR(context->GetAttr("members", &members));
        TF_RETURN_IF_ERROR(context->GetAttr("numels", &numels));
        int at = 0;
        for (const auto member : members) {
            context->set_output(at++, context->Vector(numels.at(static_cast<std::size_t>(member))));
        }
        context->set_output(at, context->Scalar());
        return tf::OkStatus();
    });

REGISTER_KERNEL_BUILDER(Name("DeepReduceEncode").Device(tf::DEVICE_CPU), EncodeOp);
REGISTER_KERNEL_BUILDER(Name("DeepReduceDecode").Device(tf::DEVICE_CPU), DecodeOp);

}  // namespace
}  // namespace deepreduce

// For Python, by ctypes.
extern "C" {

/// Takes the address of a `FrameKernels`; false for one of another layout.
bool deepreduce_take_kernels(std::uintptr_t address) {
    const auto* given = reinterpret_cast<const deepreduce::FrameKernels*>(address);
    if (given->layout != deepreduce::kFrameKernelsLayout) {
        return false;
    }
    deepreduce::kernels = given;
    return true;
}

/// From now on this session's bundles say why it can't go on.
void deepreduce_fail(std::int64_t number, const char* text) {
    const std::lock_guard<std::mutex> lock(deepreduce::sessions_mutex);
    deepreduce::session(number).failure = text;
}

/// Whether a bundle of a session was sent and its gather not decoded for so long; of which bucket and step.
bool deepreduce_late(std::int64_t number, std::int64_t limit_ns, std::int64_t* bucket, std::int64_t* step) {
    const std::lock_guard<std::mutex> lock(deepreduce::sessions_mutex);
    for (const auto& [of_bucket, one] : deepreduce::session(number).under_way) {
        if (deepreduce::now_ns() - one.since > limit_ns) {
            *bucket = of_bucket;
            *step = one.step;
            return true;
        }
    }
    return false;
}

}  // extern "C"
