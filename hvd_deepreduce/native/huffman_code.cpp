#include "huffman_code.hpp"

#include <algorithm>

namespace deepreduce::huffman {
namespace {

/// Merges the two lightest nodes until one is left. Leaves are sorted and merged nodes come about in the order of their
/// weights, so that the lightest is the first of one of two queues.
class Tree {
  public:
    explicit Tree(const Weights& weights) {
        for (unsigned symbol = 0; symbol < kSymbols; ++symbol) {
            if (weights[symbol] != 0) {
                nodes_[leaves_++] = {weights[symbol], static_cast<std::uint16_t>(symbol)};
            }
        }
        std::sort(nodes_.begin(), nodes_.begin() + leaves_, [](const Node& left, const Node& right) {
            return left.weight != right.weight ? left.weight < right.weight : left.link < right.link;
        });
        for (unsigned i = 0; i < leaves_; ++i) {
            symbols_[i] = static_cast<std::uint8_t>(nodes_[i].link);
        }
    }

    Lengths depths() {
        Lengths lengths{};
        if (leaves_ < 2) {
            for (unsigned i = 0; i < leaves_; ++i) {
                lengths[symbols_[i]] = 1;
            }
            return lengths;
        }
        merge_all();
        const unsigned root = 2 * leaves_ - 2;
        std::array<std::uint8_t, 2 * kSymbols> depth;
        depth[root] = 0;
        for (unsigned node = root; node-- > 0;) {
            depth[node] = static_cast<std::uint8_t>(depth[nodes_[node].link] + 1);
            if (node < leaves_) {
                lengths[symbols_[node]] = depth[node];
            }
        }
        return lengths;
    }

  private:
    /// `link` is the symbol while leaves are sorted, and then the parent.
    struct Node {
        std::uint64_t weight;
        std::uint16_t link;
    };

    void merge_all() {
        unsigned leaf = 0;
        unsigned merged = leaves_;
        for (unsigned made = leaves_; made < 2 * leaves_ - 1; ++made) {
            std::uint64_t weight = 0;
            for (unsigned child = 0; child < 2; ++child) {
                // Leaves go first where weights are equal: their numbers are lower.
                const bool take_leaf =
                    leaf < leaves_ && (merged == made || nodes_[leaf].weight <= nodes_[merged].weight);
                Node& lightest = nodes_[take_leaf ? leaf++ : merged++];
                lightest.link = static_cast<std::uint16_t>(made);
                weight += lightest.weight;
            }
            nodes_[made] = {weight, 0};
        }
    }

    unsigned leaves_ = 0;
    std::array<Node, 2 * kSymbols> nodes_;
    std::array<std::uint8_t, kSymbols> symbols_;
};

}  // namespace

Lengths lengths_of(Weights weights) {
    for (;;) {
        const Lengths lengths = Tree(weights).depths();
        if (*std::max_element(lengths.begin(), lengths.end()) <= kLongest) {
            return lengths;
        }
        // Equal weights give eight bits, so this comes to an end.
        for (std::uint64_t& weight : weights) {
            weight = (weight + 1) / 2;
        }
    }
}

bool is_code(const Lengths& lengths) {
    std::uint32_t used = 0;
    std::uint32_t share = 0;
    for (const std::uint8_t length : lengths) {
        if (length != 0) {
            used += 1;
            share += std::uint32_t{1} << (kLongest - length);
        }
    }
    constexpr std::uint32_t kWhole = std::uint32_t{1} << kLongest;
    return share == kWhole || (used == 1 && share == kWhole / 2);
}

std::array<std::uint16_t, kSymbols> words_of(const Lengths& lengths) {
    std::array<std::uint32_t, kLongest + 2> next{};
    for (const std::uint8_t length : lengths) {
        next[length + 1u] += length != 0;
    }
    for (unsigned length = 1; length <= kLongest; ++length) {
        next[length] = (next[length] + next[length - 1]) * 2;
    }
    std::array<std::uint16_t, kSymbols> words{};
    for (unsigned symbol = 0; symbol < kSymbols; ++symbol) {
        const unsigned length = lengths[symbol];
        if (length == 0) {
            continue;
        }
        const std::uint32_t word = next[length]++;
        for (unsigned bit = 0; bit < length; ++bit) {
            words[symbol] = static_cast<std::uint16_t>(words[symbol] | (word >> (length - 1 - bit) & 1) << bit);
        }
    }
    return words;
}

Table::Table(const Lengths& lengths) {
    const unsigned longest = *std::max_element(lengths.begin(), lengths.end());
    const std::uint32_t size = std::uint32_t{1} << longest;
    mask_ = size - 1;
    if (longest == 1) {
        // A symbol alone leaves one of them unset.
        entries_[0] = entries_[1] = {0, 0};
    }
    const auto words = words_of(lengths);
    for (unsigned symbol = 0; symbol < kSymbols; ++symbol) {
        const std::uint8_t length = lengths[symbol];
        if (length != 0) {
            for (std::uint32_t i = words[symbol]; i < size; i += std::uint32_t{1} << length) {
                entries_[i] = {static_cast<std::uint8_t>(symbol), length};
            }
        }
    }
}

Status finish(const char* where, Bytes payload, const BitReader& reader) {
    if (reader.bytes_left() != 0) {
        return failure(Fault::corrupt, where, "payload of {} bytes; {} are left over", payload.size,
                       reader.bytes_left());
    }
    if (!reader.padding_is_zero()) {
        return failure(Fault::corrupt, where, "padding bits of the last byte, {}, are not zero",
                       payload[payload.size - 1]);
    }
    return {};
}

}  // namespace deepreduce::huffman
