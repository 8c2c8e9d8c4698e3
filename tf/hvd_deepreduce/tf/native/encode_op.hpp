// From gradients to a bundle. Part of ops.cpp only.
#pragma once

#include "blake2b.hpp"
#include "op_common.hpp"

namespace deepreduce {
namespace {

class EncodeOp : public tf::OpKernel {
  public:
    explicit EncodeOp(tf::OpKernelConstruction* context) : tf::OpKernel(context) {
        std::int64_t seed = 0;
        OP_REQUIRES_OK(context, common_.read(context));
        OP_REQUIRES_OK(context, context->GetAttr("rank", &rank_));
        OP_REQUIRES_OK(context, context->GetAttr("count", &count_));
        OP_REQUIRES_OK(context, context->GetAttr("choices", &choices_));
        OP_REQUIRES_OK(context, context->GetAttr("names", &names_));
        OP_REQUIRES_OK(context, context->GetAttr("stochastic", &stochastic_));
        OP_REQUIRES_OK(context, context->GetAttr("seed", &seed));
        seed_ = static_cast<std::uint64_t>(seed);
    }

    void Compute(tf::OpKernelContext* context) override {
        tf::OpInputList gradients;
        tf::OpInputList residuals;
        OP_REQUIRES_OK(context, context->input_list("gradients", &gradients));
        OP_REQUIRES_OK(context, context->input_list("residuals", &residuals));
        Locked steps;
        Locked facts;
        OP_REQUIRES_OK(context, steps.open(context, tf::HandleFromInput(context, 2)));
        OP_REQUIRES_OK(context, facts.open(context, tf::HandleFromInput(context, 3)));
        const auto memory = std::make_unique<Locked[]>(static_cast<std::size_t>(residuals.size()));
        for (int i = 0; i < residuals.size(); ++i) {
            OP_REQUIRES_OK(context, memory[static_cast<std::size_t>(i)].open(
                                        context, residuals[i].scalar<tf::ResourceHandle>()()));
        }
        const std::int64_t step = steps.tensor().scalar<tf::int64>()();
        const BundleHeader header{common_.fingerprint, static_cast<std::uint64_t>(rank_),
                                  static_cast<std::uint64_t>(common_.bucket), static_cast<std::uint64_t>(step)};
        std::string failure = context->input(0).scalar<tf::tstring>()();
        {
            const std::lock_guard<std::mutex> lock(sessions_mutex);
            failure = failure.empty() ? session(common_.session).failure : failure;
        }
        std::vector<std::uint8_t> body;
        std::vector<std::int64_t> rows(kEncodeFacts * common_.members.size());
        if (failure.empty()) {
            std::vector<EncodeJob> jobs;
            for (int i = 0; i < gradients.size(); ++i) {
                const auto at = static_cast<std::size_t>(i);
                EncodeJob job;
                job.gradient = to_dense(gradients[i]);
                if (common_.stages.residual) {
                    job.residual = to_dense(memory[at].tensor());
                    OP_REQUIRES(context, job.residual.numel() == job.gradient.numel(),
                                tf::errors::InvalidArgument("DeepReduce: a residual of another size"));
                }
                job.choice.kept = static_cast<std::uint64_t>(choices_[3 * at]);
                job.choice.threshold = -1;
                job.choice.sampled = static_cast<std::uint64_t>(choices_[3 * at + 1]);
                job.choice.above = static_cast<std::uint64_t>(choices_[3 * at + 2]);
                job.key = stochastic_ ? key(names_[at], step) : 0;
                jobs.push_back(job);
            }
            const Reserve reserve = [](void* given, std::size_t size) {
                auto& bytes = *static_cast<std::vector<std::uint8_t>*>(given);
                bytes.resize(size);
                return bytes.data();
            };
            kernels->encode(common_.stages, {jobs.data(), jobs.size()}, static_cast<unsigned>(common_.threads),
                            {rows.data(), rows.size()}, reserve, &body);
        }
        std::vector<std::uint8_t> tail = tail_of(header);
        Locked last;
        OP_REQUIRES_OK(context, last.open(context, tf::HandleFromInput(context, 4)));
        std::size_t length = 0;
        if (failure.empty()) {
            append_frames(body, rows, tail);
            length = padded_length(kChecksumEnd + tail.size(), static_cast<std::uint64_t>(last.tensor().NumElements()));
            if (length * static_cast<std::uint64_t>(common_.size) >= std::uint64_t{1} << 31) {
                failure = "bucket " + std::to_string(common_.bucket) + ": " + std::to_string(common_.size) +
                          " bundles of about " + std::to_string(length) +
                          " bytes; a gather holds less than 2147483648: choose a lower density or smaller bucket_bytes";
                tail = tail_of(header);
            }
        }
        if (!failure.empty()) {
            std::size_t end = std::min(failure.size(), kLongestMessage);
            while (end < failure.size() && end > 0 && (failure[end] & 0xc0) == 0x80) {
                --end;  // not within a character
            }
            append_varint(tail, end);
            tail.insert(tail.end(), failure.begin(), failure.begin() + static_cast<std::ptrdiff_t>(end));
            length = kChecksumEnd + tail.size();
        }
        tf::Tensor* bundle = nullptr;
        OP_REQUIRES_OK(context,
                       context->allocate_output(0, tf::TensorShape({static_cast<tf::int64>(length)}), &bundle));
        const Span<std::uint8_t> out{bundle->flat<tf::uint8>().data(), length};
        std::copy(tail.begin(), tail.end(), out.begin() + kChecksumEnd);
        std::fill(out.begin() + kChecksumEnd + tail.size(), out.end(), std::uint8_t{0});
        write_head(header, failure.empty() ? BundleKind::frames : BundleKind::error, out);
        tf::Tensor* told = nullptr;
        OP_REQUIRES_OK(context, context->allocate_output(1, tf::TensorShape({}), &told));
        told->scalar<tf::int64>()() = step;
        if (failure.empty()) {
            last.tensor() = *bundle;
            count(rows, facts.tensor());
        }
        steps.tensor().scalar<tf::int64>()() = step + 1;
        const std::int64_t now = now_ns();
        auto row = facts.tensor().matrix<tf::int64>();
        row(count_, kCollectives) += 1;
        row(count_, kBundleBytes) += static_cast<std::int64_t>(length);
        row(count_, kSentAt) = now;
        row(count_, kRound) = context->input(1).scalar<tf::int64>()();
        row(count_, kProbes) += static_cast<std::int64_t>(common_.members.size());
        const std::lock_guard<std::mutex> lock(sessions_mutex);
        session(common_.session).under_way[common_.bucket] = {step, now};
    }

  private:
    std::uint64_t key(const std::string& name, std::int64_t step) const {
        const std::uint64_t fields[3] = {seed_, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(rank_)};
        return blake2b_u64(std::string(reinterpret_cast<const char*>(fields), sizeof fields) + name);
    }

    /// Members without a gradient count as empty.
    void append_frames(const std::vector<std::uint8_t>& body, const std::vector<std::int64_t>& rows,
                       std::vector<std::uint8_t>& tail) const {
        auto frame = body.begin();
        std::size_t at = 0;
        for (std::int64_t member = 0; member < count_; ++member) {
            if (at < common_.members.size() && common_.members[at] == member) {
                const auto end = frame + static_cast<std::ptrdiff_t>(rows[kEncodeFacts * at]);
                tail.insert(tail.end(), frame, end);
                frame = end;
                ++at;
            } else {
                tail.insert(tail.end(), 2, std::uint8_t{0});
            }
        }
    }

    void count(const std::vector<std::int64_t>& rows, tf::Tensor& facts) const {
        auto told = facts.matrix<tf::int64>();
        for (std::size_t at = 0; at < common_.members.size(); ++at) {
            const std::int64_t* row = rows.data() + kEncodeFacts * at;
            const std::int64_t member = common_.members[at];
            told(member, kSteps) += 1;
            told(member, kSentBytes) += row[0];
            told(member, kKept) += row[1];
            told(member, kIndexBytes) += row[2];
            told(member, kValueBytes) += row[3];
            told(member, kNotFinite) += row[4] == 0;
            told(member, kEncodeNs) += row[5];
        }
    }

    Common common_;
    std::int64_t rank_ = 0;
    std::int64_t count_ = 0;
    std::uint64_t seed_ = 0;
    bool stochastic_ = false;
    Integers choices_;
    std::vector<std::string> names_;
};

}  // namespace
}  // namespace deepreduce
