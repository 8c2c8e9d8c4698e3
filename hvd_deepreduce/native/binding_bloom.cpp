#include <algorithm>
#include <array>

#include "binding.hpp"
#include "binding_results.hpp"
#include "bitmap.hpp"
#include "bloom.hpp"
#include "bloom_conflicts.hpp"

namespace deepreduce::binding {
namespace {

constexpr std::uint64_t kMostSize = (std::uint64_t{1} << 35) - 1;

unsigned to_hashes(const py::object& hashes) {
    return static_cast<unsigned>(to_integer(hashes, "hashes", 1, bloom::kMostHashes));
}

std::uint64_t to_bytes(const py::object& size) { return to_integer(size, "size", bloom::kLeastBytes, kMostSize); }

py::bytes bloom_head(const py::object& policy, const py::object& hashes, const py::object& size,
                     const py::object& key) {
    bloom::Head head;
    head.policy = static_cast<bloom::Policy>(
        to_integer(policy, "policy", 0, static_cast<std::uint64_t>(bloom::Policy::conflicts)));
    head.hashes = to_hashes(hashes);
    head.size = to_integer(size, "size", 1, kMostSize);
    head.key = to_key(key);
    std::array<std::uint8_t, bloom::kHeadCapacity> bytes;
    const std::size_t length = bloom::write_head(head, {bytes.data(), bytes.size()});
    return {reinterpret_cast<const char*>(bytes.data()), length};
}

py::tuple bloom_read(const py::object& payload, const py::object& kept, const py::object& numel, bool sliced) {
    const Payload data(payload);
    bloom::Head head;
    Bytes filter;
    require_ok(bloom::read(data.bytes(), sliced ? bloom::Engine::pybloom : bloom::Engine::native, to_kept(kept),
                           to_numel(numel), head, filter));
    return py::make_tuple(static_cast<unsigned>(head.policy), head.hashes, head.size, head.key,
                          py::bytes(reinterpret_cast<const char*>(filter.data), filter.size));
}

py::bytes bloom_insert(const py::object& positions, const py::object& numel, const py::object& hashes,
                       const py::object& size) {
    const std::uint64_t limit = to_numel(numel);
    const unsigned count = to_hashes(hashes);
    const std::uint64_t bytes = to_bytes(size);
    return with_positions(positions, limit, [=](auto places) {
        Span<std::uint8_t> out;
        py::bytes filter = new_bytes(bytes, out);
        require_ok(run([=] {
            std::fill(out.begin(), out.end(), std::uint8_t{0});
            return bloom::insert(places, limit, count, out);
        }));
        return filter;
    });
}

py::array bloom_members(const py::object& filter, const py::object& hashes, const py::object& numel) {
    const Payload data(filter);
    const Bytes bytes = data.bytes();
    const std::uint64_t limit = to_numel(numel);
    const unsigned per_position = to_hashes(hashes);
    to_bytes(py::int_(bytes.size));
    const std::size_t marked = bitmap_size(limit);
    const auto bitmap = scratch<std::uint8_t>(marked);
    const std::uint64_t count = run([&] {
        const auto unrolled = scratch<std::uint8_t>(bytes.size + bloom::kUnrolled);
        std::copy(bytes.begin(), bytes.end(), unrolled.get());
        std::copy_n(bytes.begin(), bloom::kUnrolled, unrolled.get() + bytes.size);
        return bloom::members({unrolled.get(), bytes.size + bloom::kUnrolled}, per_position, limit,
                              {bitmap.get(), marked});
    });
    return with_position_dtype(limit, [&](auto position) -> py::array {
        py::array_t<decltype(position)> positions(static_cast<py::ssize_t>(count));
        require_ok(run([&, out = fill(positions)] { return bitmap_decode({bitmap.get(), marked}, limit, out); }));
        return positions;
    });
}

py::array bloom_places(const py::object& positions, const py::object& numel, const py::object& hashes,
                       const py::object& size) {
    const unsigned count = to_hashes(hashes);
    const std::uint64_t bytes = to_bytes(size);
    return with_positions(positions, to_numel(numel), [=](auto places) {
        py::array_t<std::uint64_t> bits(static_cast<py::ssize_t>(places.size * count));
        run([=, out = fill(bits)] { bloom::places(places, count, bytes, out); });
        return bits;
    });
}

py::array bloom_conflicts(const py::object& places, const py::object& hashes, const py::object& bits_given,
                          const py::object& kept_given, const py::object& key_given) {
    const py::array array = to_array_of<std::uint64_t>(places, "places");
    const unsigned per_member = to_hashes(hashes);
    const std::uint64_t bits = to_integer(bits_given, "bits", 1, 8 * kMostSize);
    const std::uint64_t kept = to_kept(kept_given);
    const std::uint64_t key = to_key(key_given);
    const auto owned = view<std::uint64_t>(array);
    if (owned.size % per_member != 0) {
        refuse("places: " + std::to_string(owned.size) + " are not " + std::to_string(per_member) + " for each member");
    }
    const std::size_t members = owned.size / per_member;
    py::array_t<bool> taken(static_cast<py::ssize_t>(members));
    std::fill_n(taken.mutable_data(), members, false);
    const Span<std::uint8_t> out{reinterpret_cast<std::uint8_t*>(taken.mutable_data()), members};
    require_ok(run([=] {
        const auto sizes = scratch<std::uint32_t>(bits);
        const auto conflicts = scratch<bloom::Conflict>(owned.size);
        return bloom::choose_by_conflicts(owned, per_member, kept, key, {sizes.get(), bits},
                                          {conflicts.get(), owned.size}, out);
    }));
    return taken;
}

}  // namespace

void bind_bloom(py::module_& module) {
    module.def("bloom_head", &bloom_head, py::arg("policy"), py::arg("hashes"), py::arg("size"), py::arg("key"));
    module.def("bloom_read", &bloom_read, py::arg("payload"), py::arg("kept"), py::arg("numel"), py::arg("sliced"));
    module.def("bloom_insert", &bloom_insert, py::arg("positions"), py::arg("numel"), py::arg("hashes"),
               py::arg("size"));
    module.def("bloom_members", &bloom_members, py::arg("filter"), py::arg("hashes"), py::arg("numel"));
    module.def("bloom_places", &bloom_places, py::arg("positions"), py::arg("numel"), py::arg("hashes"),
               py::arg("size"));
    module.def("bloom_conflicts", &bloom_conflicts, py::arg("places"), py::arg("hashes"), py::arg("bits"),
               py::arg("kept"), py::arg("key"));
}

}  // namespace deepreduce::binding
