#include "binding.hpp"
#include "binding_values.hpp"
#include "half_floats.hpp"
#include "qsgd.hpp"
#include "random.hpp"

namespace deepreduce::binding {
namespace {

constexpr std::uint64_t kMaxBucket = std::uint64_t{1} << 20;

constexpr auto two_bytes_each = [](auto values) { return 2 * std::uint64_t{values.size}; };

py::bytes fp16_encode(const py::object& values) {
    return encode(values, two_bytes_each, [](auto source, auto out) { deepreduce::fp16_encode(source, out); });
}

py::array fp16_decode(const py::object& payload, const py::object& kept, const py::object& dtype) {
    return decode(
        payload, kept, dtype, [](Bytes in, std::uint64_t count, auto) { return fp16_check(in, count); },
        [](Bytes in, auto out) { return deepreduce::fp16_decode(in, out); });
}

py::bytes bf16_encode(const py::object& values) {
    return encode(values, two_bytes_each, [](auto source, auto out) { deepreduce::bf16_encode(source, out); });
}

py::array bf16_decode(const py::object& payload, const py::object& kept, const py::object& dtype) {
    return decode(
        payload, kept, dtype, [](Bytes in, std::uint64_t count, auto) { return bf16_check(in, count); },
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
        values, [=](auto source) { return qsgd_size(source.size, settings); },
        [=](auto source, auto out) { deepreduce::qsgd_encode(source, settings, draws, out); });
}

py::array qsgd_decode(const py::object& payload, const py::object& kept, const py::object& bits,
                      const py::object& bucket, const py::object& dtype) {
    const QsgdSettings settings = to_settings(bits, bucket);
    return decode(
        payload, kept, dtype, [=](Bytes in, std::uint64_t count, auto) { return qsgd_check(in, count, settings); },
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
