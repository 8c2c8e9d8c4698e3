// Adaptive models of value codec `quant`: levels by the size of those before them, signs by row and column; FORMAT.md,
// 5.10.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>

#include "range_coder.hpp"

namespace deepreduce {

constexpr unsigned kTokens = 16;
constexpr unsigned kContexts = 8;
constexpr std::uint64_t kContextsFrom = 2048;

/// The smallest shifted level of each token, and the bits that tell apart those it stands for.
constexpr std::array<std::uint32_t, kTokens> kTokenBase = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 28, 36, 52};
constexpr std::array<std::uint8_t, kTokens> kTokenBits = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 0};
constexpr unsigned kEscape = kTokens - 1;

/// Token of each shifted level below that of the escape.
constexpr auto kTokenOf = [] {
    std::array<std::uint8_t, kTokenBase[kEscape]> tokens{};
    unsigned token = 0;
    for (std::size_t level = 0; level < tokens.size(); ++level) {
        token += level == kTokenBase[token + 1] ? 1 : 0;
        tokens[level] = static_cast<std::uint8_t>(token);
    }
    return tokens;
}();

inline unsigned token_of(std::uint64_t shifted) { return shifted < kTokenOf.size() ? kTokenOf[shifted] : kEscape; }

/// Counts of tokens, made into 4096ths anew now and then.
class TokenModel {
  public:
    explicit TokenModel(unsigned tokens = kTokens) : tokens_(tokens) {
        constexpr std::array<std::uint32_t, kTokens> first = {8, 6, 5, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1};
        for (unsigned i = 0; i < tokens; ++i) {
            counts_[i] = first[i];
            total_ += first[i];
        }
        rebuild();
    }

    void put(RangeEncoder& out, unsigned token) {
        out.put(starts_[token], starts_[token + 1] - starts_[token], 12);
        saw(token);
    }

    unsigned take(RangeDecoder& in) {
        const auto place = static_cast<std::int16_t>(in.peek(12));
        unsigned token = 0;
        for (unsigned i = 1; i < kTokens; ++i) {
            token += starts_[i] <= place ? 1 : 0;
        }
        in.take(static_cast<std::uint32_t>(starts_[token]),
                static_cast<std::uint32_t>(starts_[token + 1] - starts_[token]));
        saw(token);
        return token;
    }

  private:
    void saw(unsigned token) {
        ++counts_[token];
        ++total_;
        if (++seen_ == due_) {
            refresh();
        }
    }

    void refresh() {
        seen_ = 0;
        due_ = std::min(2 * due_, 256u);
        if (total_ > 8192) {
            total_ = 0;
            for (unsigned i = 0; i < tokens_; ++i) {
                counts_[i] = (counts_[i] + 1) / 2;
                total_ += counts_[i];
            }
        }
        rebuild();
    }

    /// A 4096th for each token, the rest by counts; what rounding leaves over is token 0's.
    void rebuild() {
        const std::uint32_t rest = 4096 - tokens_;
        std::uint32_t place = 4096;
        for (unsigned i = tokens_ - 1; i > 0; --i) {
            place -= 1 + counts_[i] * rest / total_;
            starts_[i] = static_cast<std::int16_t>(place);
        }
    }

    std::array<std::uint32_t, kTokens> counts_{};
    // Those of tokens that are not in use stay at the end, where no place is.
    std::array<std::int16_t, kTokens + 1> starts_ = {0,    4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096,
                                                     4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096};
    std::uint32_t total_ = 0;
    unsigned tokens_;
    unsigned seen_ = 0;
    unsigned due_ = 8;
};

/// The levels of a payload.
class LevelModel {
  public:
    LevelModel(unsigned tokens, unsigned shift, std::uint64_t kept)
        : one_token_(tokens == 1), several_(kept >= kContextsFrom), shift_(shift) {
        models_.fill(TokenModel(tokens));
    }

    /// A level with `count` bits of something else below it.
    void put(RangeEncoder& out, std::uint64_t level, std::uint64_t below, unsigned count) {
        if (one_token_) {
            out.put_bits(below, count);
            return;
        }
        const unsigned token = token_of(level >> shift_);
        model().put(out, token);
        follow(token);
        unsigned extra = kTokenBits[token];
        std::uint64_t rest = level - (static_cast<std::uint64_t>(kTokenBase[token]) << shift_);
        if (token == kEscape) {
            const std::uint64_t above = (rest >> shift_) + 1;
            extra = static_cast<unsigned>(63 - __builtin_clzll(above));
            out.put_bits(extra, 5);
            rest -= ((std::uint64_t{1} << extra) - 1) << shift_;
        }
        out.put_bits(rest << count | below, extra + shift_ + count);
    }

    std::uint64_t take(RangeDecoder& in, std::uint64_t& below, unsigned count) {
        if (one_token_) {
            below = in.take_bits(count);
            return 0;
        }
        const unsigned token = model().take(in);
        follow(token);
        unsigned extra = kTokenBits[token];
        std::uint64_t base = kTokenBase[token];
        if (token == kEscape) {
            extra = static_cast<unsigned>(in.take_bits(5));
            base += (std::uint64_t{1} << extra) - 1;
        }
        const std::uint64_t field = in.take_bits(extra + shift_ + count);
        below = field & ((std::uint64_t{1} << count) - 1);
        return (base << shift_) + (field >> count);
    }

  private:
    TokenModel& model() {
        // Limits of 32, 64, 112, 176, 272, 400 and 560.
        constexpr std::array<std::uint8_t, 64> context = {
            0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6,
            6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
        return models_[several_ ? context[history_ / 16] : 0];
    }
    void follow(unsigned token) { history_ += 4 * token - history_ / 16; }

    std::array<TokenModel, kContexts> models_;
    bool one_token_;
    bool several_;
    unsigned shift_;
    /// 64 times a running mean of tokens: below 1024.
    std::uint32_t history_ = 0;
};

/// Signs as those of a product of two vectors, one of rows and one of columns, which gradients of layers mostly are.
template <typename P>
class SignModel {
  public:
    /// `agreed` is zeroed, an element for each column.
    SignModel(Span<const P> positions, Span<std::int8_t> agreed) : positions_(positions), agreed_(agreed) {}

    void put(RangeEncoder& out, std::size_t index, bool negative) {
        const bool expected = predict(index);
        out.put_bit(*bits_, negative != expected);
        saw(negative);
    }

    bool take(RangeDecoder& in, std::size_t index) {
        const bool expected = predict(index);
        const bool negative = in.take_bit(*bits_) != expected;
        saw(negative);
        return negative;
    }

  private:
    /// Whether the next sign is expected to be negative.
    bool predict(std::size_t index) {
        const std::uint64_t columns = agreed_.size;
        const std::uint64_t position = positions_[index];
        if (position - start_ >= columns) {
            start_ = position / columns * columns;
            row_ = 0;
            majority_ = 0;
        }
        column_ = agreed_.data + (position - start_);
        const bool negative = (row_ < 0) != (*column_ < 0);
        const int majority = negative ? -majority_ : majority_;
        const int place = (std::min(std::abs(row_), 3) * 4 + std::min(std::abs(static_cast<int>(*column_)), 3)) * 5 +
                          std::clamp(majority, -2, 2) + 2;
        bits_ = &models_[static_cast<std::size_t>(place)];
        return negative;
    }

    void saw(bool negative) {
        const int sign = negative ? -1 : 1;
        const int by_row = row_ < 0 ? -sign : sign;
        row_ = std::clamp(row_ + (*column_ < 0 ? -sign : sign), -15, 15);
        *column_ = static_cast<std::int8_t>(std::clamp(*column_ + by_row, -15, 15));
        majority_ = std::clamp(majority_ + sign, -15, 15);
    }

    Span<const P> positions_;
    Span<std::int8_t> agreed_;
    std::array<BitModel, 80> models_{};
    BitModel* bits_ = nullptr;
    std::int8_t* column_ = nullptr;
    std::uint64_t start_ = 0;
    int row_ = 0;
    int majority_ = 0;
};

}  // namespace deepreduce
