// The heads of the payloads of `fit_poly` and `fit_dexp`, written and read: FORMAT.md, 5.11.
#pragma once

#include <cmath>

#include "bytes.hpp"
#include "span.hpp"
#include "status.hpp"
#include "varint.hpp"

namespace deepreduce {

/// Appends numbers to a span that has room for them.
class ByteWriter {
  public:
    explicit ByteWriter(Span<std::uint8_t> out) : out_(out) {}

    template <typename T>
    void put(T value) {
        store(out_.data + position_, value);
        position_ += sizeof value;
    }

    void put_varint(std::uint64_t value) {
        VarintWriter writer(out_.part(position_, out_.size - position_));
        writer.put(value);
        position_ += static_cast<std::size_t>(writer.size());
    }

    std::size_t size() const { return position_; }

  private:
    Span<std::uint8_t> out_;
    std::size_t position_ = 0;
};

/// Takes numbers off a payload. Once one is missing, all are zero and `status` says why.
class ByteTaker {
  public:
    ByteTaker(const char* where, Bytes in) : where_(where), in_(in) {}

    template <typename T>
    T take() {
        if (!status_.ok() || in_.size - position_ < sizeof(T)) {
            fail(failure(Fault::truncated, where_, "payload of {} bytes; more are needed", in_.size));
            return T{};
        }
        position_ += sizeof(T);
        return load<T>(in_.data + position_ - sizeof(T));
    }

    std::uint64_t take_varint() {
        VarintReader reader(in_, position_);
        std::uint64_t value = 0;
        if (!status_.ok() || !reader.take(value)) {
            fail(reader.failure(where_));
            return 0;
        }
        position_ = reader.position();
        return value;
    }

    /// The first fault stays.
    void fail(const Status& status) {
        if (status_.ok()) {
            status_ = status;
        }
    }

    void corrupt(const char* text, std::uint64_t first = 0, std::uint64_t second = 0) {
        fail(failure(Fault::corrupt, where_, text, first, second));
    }

    bool ok() const { return status_.ok(); }
    const Status& status() const { return status_; }
    Bytes rest() const { return in_.part(position_, in_.size - position_); }

    /// Takes a coefficient, which must be finite.
    float take_coefficient() {
        const float value = take<float>();
        if (!std::isfinite(value)) {
            corrupt("a coefficient at byte {} is not finite", position_ - sizeof value);
        }
        return value;
    }

  private:
    const char* where_;
    Bytes in_;
    std::size_t position_ = 0;
    Status status_;
};

}  // namespace deepreduce
