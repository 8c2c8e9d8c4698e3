#include "binding.hpp"
#include "binding_results.hpp"
#include "half_floats.hpp"
#include "qsgd.hpp"
#include "random.hpp"

namespace deepreduce::binding {
namespace {

constexpr std::uint64_t kMaxBucket = std::uint64_t{1} << 20;

/// New bytes, as many as `size` says for a number of values, filled by an encoder.
template <typename Size, typename Kernel>
py::bytes encode(const py::object& values, Size size, Kernel kernel) {
    return with_values(values, "values", [&](const py::array& array, auto value) {
        const auto source = view<decltype(value)>(array);
        Span<std::uint8_t> out;
        py::bytes bytes = new_bytes(size(source.size), out);
        run([&] { kernel(source, out); });
        return bytes;
    });
}

/// New values of a dtype, filled by a decoder once `check` has passed the payload and the number kept.
template <typename Check, typename Kernel>
py::array decode(const py::object& payload, const py::object& kept, const py::object& dtype, Check check,
                 Kernel kernel) {
    const Payload data(payload);
    const Bytes bytes = data.bytes();
    const std::uint64_t count = to_kept(kept);
    return with_value_dtype(dtype, "dtype", [&](auto value) -> py::array {
        require_ok(check(bytes, count));
        py::array_t<decltype(value)> values(static_cast<py::ssize_t>(count));
        require_ok(run([&, out = fill(values)] { return kernel(bytes, out); }));
        return values;
    });
}

std::uint64_t two_bytes_each(std::uint64_t count) { return 2 * count; }

py::bytes fp16_encode(const py::object& values) {
    return encode(values, two_bytes_each, [](auto source, auto out) { deepreduce::fp16_encode(source, out); });
}

py::array fp16_decode(const py::object& payload, const py::object& kept, const py::object& dtype) {
    return decode(payload, kept, dtype, fp16_check,
                  [](Bytes in, auto out) { return deepreduce::fp16_decode(in, out); });
}

py::bytes bf16_encode(const py::object& values) {
    return encode(values, two_bytes_each, [](auto source, auto out) { deepreduce::bf16_encode(source, out); });
}

py::array bf16_decode(const py::object& payload, const py::object& kept, const py::object& dtype) {
    return decode(payload, kept, dtype, bf16_check,
                  [](Bytes in, auto out) { return deepreduce::bf16_decode(in, out); });
}

QsgdSettings to_settings(const py::object& bits, const py::object& bucket) {
    return {static_cast<unsigned>(to_integer(bits, "bits", 2, 16)), to_integer(bucket, "bucket", 1, kMaxBucket)};
}

py::bytes qsgd_encode(const py::object& values, const py::object& bits, const py::object& bucket,
                      const py::object& key) {
    const QsgdSettings settings = to_settings(bits, bucket);
    const std::uint64_t draws = to_key(key);
    return encode(
        values, [=](std::uint64_t count) { return qsgd_size(count, settings); },
        [=](auto source, auto out) { deepreduce::qsgd_encode(source, settings, draws, out); });
}

py::array qsgd_decode(const py::object& payload, const py::object& kept, const py::object& bits,
                      const py::object& bucket, const py::object& dtype) {
    const QsgdSettings settings = to_settings(bits, bucket);
    return decode(
        payload, kept, dtype, [=](Bytes in, std::uint64_t count) { return qsgd_check(in, count, settings); },
        [=](Bytes in, auto out) { return deepreduce::qsgd_decode(in, settings, out); });
}

py::array random_u64(const py::object& key, const py::object& count) {
    const std::uint64_t draws = to_key(key);
    py::array_t<std::uint64_t> values(static_cast<py::ssize_t>(to_integer(count, "count", 0, kMaxNumel)));
    run([=, out = fill(values)] {
        for (std::size_t i = 0; i < out.size; ++i) {
            out[i] = deepreduce::random_u64(draws, i);
        }
    });
    return values;
}

}  // namespace

void bind_value_codecs(py::module_& module) {
    module.def("fp16_encode", &fp16_encode, py::arg("values"));
    module.def("fp16_decode", &fp16_decode, py::arg("payload"), py::arg("kept"), py::arg("dtype"));
    module.def("bf16_encode", &bf16_encode, py::arg("values"));
    module.def("bf16_decode", &bf16_decode, py::arg("payload"), py::arg("kept"), py::arg("dtype"));
    module.def("qsgd_encode", &qsgd_encode, py::arg("values"), py::arg("bits"), py::arg("bucket"), py::arg("key"));
    module.def("qsgd_decode", &qsgd_decode, py::arg("payload"), py::arg("kept"), py::arg("bits"), py::arg("bucket"),
               py::arg("dtype"));
    module.def("random_u64", &random_u64, py::arg("key"), py::arg("count"));
}

}  // namespace deepreduce::binding
