// What a sparsifier chooses from, added up in the very pass that looks through it: memory is what takes time here.
#pragma once

#include <algorithm>

#include "span.hpp"
#include "streams.hpp"

namespace deepreduce {

/// Plain values, or residual + gradient, which end up in the residual.
template <typename V>
class Compensated {
  public:
    explicit Compensated(Span<const V> values) : values_(values) {}
    Compensated(Span<V> residual, Span<const V> gradient) : values_(residual), sums_(residual), terms_(gradient) {}

    std::size_t size() const { return values_.size; }

    /// One value before the pass.
    V operator[](std::size_t i) const { return terms_.size == 0 ? values_[i] : values_[i] + terms_[i]; }

    /// All values, once the pass is over.
    Span<const V> values() const { return values_; }

    /// The pass, from `start` on: adds, and collects what is within a range without upper bound until there is no room
    /// for more (see streams::collect). Where the residual turns out not to be finite it is what it was again, but for
    /// rounding.
    template <typename P>
    streams::Collected pass(std::size_t start, streams::Range<V> range, Span<P> positions,
                            Span<Bits<V>> magnitudes) const {
        if (terms_.size == 0) {
            return streams::collect(values_, start, range, positions, magnitudes);
        }
        const auto found = streams::add_and_collect(sums_, terms_, start, range, positions, magnitudes);
        if (!found.finite) {
            take_back(found.next);
        }
        return found;
    }

    /// The rest of the pass, without collecting; false, as above, where the residual was not finite.
    bool add_from(std::size_t start) const {
        if (terms_.size == 0) {
            return true;
        }
        const std::size_t rest = size() - start;
        const std::size_t added = streams::add_while_finite(sums_.part(start, rest), terms_.part(start, rest));
        if (added < rest) {
            take_back(start + added);
        }
        return added == rest;
    }

  private:
    void take_back(std::size_t added) const {
        for (std::size_t i = 0; i < added; ++i) {
            sums_[i] -= terms_[i];
        }
    }

    Span<const V> values_;
    Span<V> sums_;
    Span<const V> terms_;
};

}  // namespace deepreduce
