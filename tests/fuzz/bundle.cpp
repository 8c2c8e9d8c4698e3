// Bundles as the TensorFlow op reads and writes them: FORMAT.md, 2. An input is whether to damage a bundle, how many
// ranks there are less one, bucket (2 bytes), step (4), fingerprint (4), and what was gathered; or a place (2 bytes)
// and the body of every rank's bundle.
#include "bundle.hpp"

#include "input.hpp"

namespace deepreduce::fuzz {
namespace {

constexpr std::uint64_t kMaxRanks = 3;

/// Bodies that were found lie in what was gathered, one behind the other.
void require_inside(Bytes gathered, const std::vector<Bytes>& bodies, std::uint64_t ranks) {
    require(bodies.size() == ranks, "a body for every rank");
    const std::uint8_t* end = gathered.data;
    for (const Bytes body : bodies) {
        require(body.data >= end + kShortestBundle, "a body has a head before it");
        end = body.end();
    }
    require(end == gathered.end(), "nothing is left over");
}

std::vector<std::uint8_t> write(BundleHeader header, Bytes body, std::uint64_t previous) {
    auto tail = tail_of(header);
    tail.insert(tail.end(), body.begin(), body.end());
    const auto length = padded_length(kChecksumEnd + tail.size(), previous);
    require(length >= kChecksumEnd + tail.size(), "padding takes nothing away");
    std::vector<std::uint8_t> bundle(length);
    std::copy(tail.begin(), tail.end(), bundle.begin() + kChecksumEnd);
    write_head(header, BundleKind::frames, {bundle.data(), bundle.size()});
    return bundle;
}

void test_written(BundleHeader header, std::uint64_t ranks, std::size_t place, Bytes body) {
    std::vector<std::uint8_t> gathered;
    std::uint64_t previous = 0;
    for (header.rank = 0; header.rank < ranks; ++header.rank) {
        const auto bundle = write(header, body, previous);
        previous = bundle.size();
        gathered.insert(gathered.end(), bundle.begin(), bundle.end());
    }
    Exact<std::uint8_t> exact(Bytes{gathered.data(), gathered.size()});
    std::vector<Bytes> bodies;
    require(split_bundles(exact.view(), header, ranks, bodies), "what was written is read");
    require_inside(exact.view(), bodies, ranks);
    for (const Bytes found : bodies) {
        require(found.size >= body.size && same_bytes(found.part(0, body.size), body), "bodies come back");
    }
    exact.span()[place % exact.size()] ^= 1;
    require(!split_bundles(exact.view(), header, ranks, bodies), "a flipped bit is seen");
    exact.span()[place % exact.size()] ^= 1;
    Exact<std::uint8_t> shorter(exact.view().part(0, exact.size() - 1));
    require(!split_bundles(shorter.view(), header, ranks, bodies), "a missing byte is seen");
}

}  // namespace
}  // namespace deepreduce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace deepreduce;
    fuzz::Input input(data, size);
    const bool written = input.take(1) % 2 != 0;
    const std::uint64_t ranks = 1 + input.take(1) % fuzz::kMaxRanks;
    BundleHeader header{};
    header.bucket = input.take(2);
    header.step = input.take(4);
    header.fingerprint = static_cast<std::uint32_t>(input.take(4));
    if (written) {
        const auto place = static_cast<std::size_t>(input.take(2));
        const auto body = input.rest();
        fuzz::test_written(header, ranks, place, body.view());
    } else {
        const auto gathered = input.rest();
        std::vector<Bytes> bodies;
        if (split_bundles(gathered.view(), header, ranks, bodies)) {
            fuzz::require_inside(gathered.view(), bodies, ranks);
        }
    }
    return 0;
}
