// From all ranks' bundles to gradients. Part of ops.cpp only.
#pragma once

#include "op_common.hpp"

namespace deepreduce {
namespace {

class DecodeOp : public tf::OpKernel {
  public:
    explicit DecodeOp(tf::OpKernelConstruction* context) : tf::OpKernel(context) {
        OP_REQUIRES_OK(context, common_.read(context));
        OP_REQUIRES_OK(context, context->GetAttr("numels", &numels_));
        tf::int64 bits = 0;
        OP_REQUIRES_OK(context, context->GetAttr("factor", &bits));
        std::memcpy(&factor_, &bits, sizeof factor_);
    }

    void Compute(tf::OpKernelContext* context) override {
        {
            const std::lock_guard<std::mutex> lock(sessions_mutex);
            session(common_.session).under_way.erase(common_.bucket);
        }
        const tf::Tensor& gathered = context->input(0);
        const std::int64_t step = context->input(1).scalar<tf::int64>()();
        Locked facts;
        OP_REQUIRES_OK(context, facts.open(context, tf::HandleFromInput(context, 2)));
        auto told = facts.tensor().matrix<tf::int64>();
        const auto count = static_cast<std::int64_t>(numels_.size());
        told(count, kWaitNs) += now_ns() - told(count, kSentAt);
        tf::OpOutputList flats;
        OP_REQUIRES_OK(context, context->output_list("flats", &flats));
        std::vector<Dense> outputs(numels_.size());
        for (std::size_t at = 0; at < common_.members.size(); ++at) {
            const auto member = static_cast<std::size_t>(common_.members[at]);
            tf::Tensor* flat = nullptr;
            OP_REQUIRES_OK(context, flats.allocate(static_cast<int>(at), tf::TensorShape({numels_[member]}), &flat));
            outputs[member] = to_dense(*flat);
        }
        tf::Tensor* sound = nullptr;
        OP_REQUIRES_OK(context, context->allocate_output("sound", tf::TensorShape({}), &sound));
        const std::vector<std::uint64_t> numels(numels_.begin(), numels_.end());
        const BundleHeader header{common_.fingerprint, 0, static_cast<std::uint64_t>(common_.bucket),
                                  static_cast<std::uint64_t>(step)};
        const Bytes bytes{gathered.flat<tf::uint8>().data(), static_cast<std::size_t>(gathered.NumElements())};
        std::vector<Bytes> bodies;
        std::vector<std::int64_t> rows(kDecodeFacts * numels.size());
        sound->scalar<bool>()() =
            split_bundles(bytes, header, static_cast<std::uint64_t>(common_.size), bodies) &&
            kernels->decode(common_.stages, {bodies.data(), bodies.size()}, {numels.data(), numels.size()},
                            {outputs.data(), outputs.size()}, factor_, static_cast<unsigned>(common_.threads),
                            {rows.data(), rows.size()});
        for (const auto member : common_.members) {
            told(member, kDecodeNs) += rows[kDecodeFacts * static_cast<std::size_t>(member) + 1];
        }
    }

  private:
    Common common_;
    Integers numels_;
    double factor_ = 0;
};

}  // namespace
}  // namespace deepreduce
