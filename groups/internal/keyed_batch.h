// The collectives of a link of keyed rows (keyed_link.h, which says what their payloads are): a
// batch of rows on its way there, and the gradients at these rows on their way back. One thread at
// a time; what they share (keyed_shared.h) must outlive them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/groups/collective.h>
#include <sotto/groups/keyed_link.h>
#include <sotto/groups/row_codec.h>

#include "keyed_shared.h"

namespace sotto {

/// A batch on its way: rows there, or gradients back.
class KeyedLink::Batch : public OnePhaseCollective {
 public:
  /// A frame from position `from` to position `to`, of at most `most_bytes` of payload, encoded by
  /// `codec`.
  Batch(Shared& shared, std::size_t batch, int from, int to, std::size_t most_bytes,
        const RowCodec& codec)
      : OnePhaseCollective(shared.member, shared.member.group.position == to ? 1 : 0, {most_bytes}),
        shared_(&shared),
        batch_(batch),
        from_position_(from),
        to_position_(to),
        most_bytes_(most_bytes),
        wire_id_(codec.wire_id()),
        to_{member_.edge(to)},
        from_{member_.edge(from)} {}

  /// Starts; `rows` are those that this node sends, if it does.
  void begin(std::span<const float> rows) {
    rows_ = rows;
    begin_exchange();
  }

  int phases() const override { return 1; }
  std::uint64_t parts() const override { return shared_->options.rows; }
  ExchangeVolume volume() const override;
  Status complete(const Exchange& exchange) override;

 protected:
  /// Encodes the rows that are sent.
  virtual Status write(ByteWriter& out) = 0;
  /// Reads what came into the link's came_of.
  virtual Status read(ByteReader& in) = 0;
  /// The frame with this payload is under way, or what it brought has been read.
  virtual void done(std::span<const std::byte> /*payload*/) {}
  Status post() override;

  const std::vector<std::uint64_t>& keys() const { return shared_->keys[batch_]; }
  std::size_t width() const { return shared_->options.width; }
  /// Row i of those that are sent.
  std::span<const float> row_out(std::size_t i) const {
    return rows_.subspan(i * width(), width());
  }
  /// Where row i goes that comes.
  std::span<float> row_in(std::size_t i) const {
    return shared_->came_of(batch_).subspan(i * width(), width());
  }

  Shared* shared_;
  std::size_t batch_;

 private:
  bool sends() const { return position() == from_position_; }
  Status judge();

  int from_position_;
  int to_position_;
  std::size_t most_bytes_;
  std::uint16_t wire_id_;
  std::vector<Edge> to_;
  std::vector<Edge> from_;
  std::span<const float> rows_;
};

/// A batch of rows on its way there.
class KeyedLink::Rows final : public Batch {
 public:
  Rows(Shared& shared, std::size_t batch)
      : Batch(shared, batch, shared.options.from, shared.options.to,
              sizeof(std::uint64_t) + shared.options.rows * shared.longest_row(), shared.later) {}

  std::string signature() const override;
  void save(ByteBuffer& out) const override {
    if (batch_ == 0) {
      shared_->memory.save(out);
    }
  }
  Status load(ByteReader& in) override { return batch_ == 0 ? shared_->memory.load(in) : Status(); }

 private:
  /// The digest of all before the batch, and of its keys.
  std::uint64_t digest() const {
    return shared_->memory.digest_after(std::as_bytes(std::span(keys())));
  }
  Status write(ByteWriter& out) override;
  Status read(ByteReader& in) override;
  void done(std::span<const std::byte> payload) override;
  /// Encodes row i, and leaves what it is at the other end in held_of.
  Status encode(std::size_t i, std::span<std::byte> out);
};

/// A batch of gradients on its way back.
class KeyedLink::Gradients final : public Batch {
 public:
  Gradients(Shared& shared, std::size_t batch)
      : Batch(shared, batch, shared.options.to, shared.options.from,
              shared.options.rows * shared.back.row_bytes(), shared.back) {}

  std::string signature() const override;

 private:
  Status write(ByteWriter& out) override;
  Status read(ByteReader& in) override;
};

}  // namespace sotto
