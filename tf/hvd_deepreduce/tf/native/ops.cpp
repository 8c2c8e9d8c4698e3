// TensorFlow ops that encode and decode a bucket without Python. The kernels are those of `hvd_deepreduce._native`, which
// hands over their addresses; so frames are equal byte for byte, and this file is all that is compiled for a TensorFlow.
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "blake2b.hpp"
#include "bundle.hpp"
#include "frame_batch.hpp"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/shape_inference.h"

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
            length = padded_length(kChecksumEnd + tail.size(),
                                   static_cast<std::uint64_t>(last.tensor().NumElements()));
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
