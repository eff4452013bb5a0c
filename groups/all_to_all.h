// All-to-all with counts: every member sends rows to every other, as many as it has.
//
// Rows for a member are in `slots` groups (expert by expert, say), of at most `capacity` rows each.
// A frame says how many there are of each: no exchange of counts comes before, which would cost a
// latency. (NCCL must know sizes, which is why FastMoE sends counts first.)
//
// Payload: the counts, `slots` × u16 little-endian, then the rows, slot by slot, each encoded by
// itself (row_codec.h). Elements in the header: rows × width.
// A node's own rows stay with it and are not encoded.
// Volume: p − 1 frames, empty ones too, of at most 64 + 2 slots + slots × capacity ×
// |C(width)|. Memory: that room for p frames out and in, and the rows that come, p × slots ×
// capacity × width floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sotto/groups/collective.h>
#include <sotto/groups/row_codec.h>

namespace sotto {

/// The room for rows from one member to another.
struct RowRoom {
  std::size_t width = 1;     ///< elements of a row
  std::size_t slots = 1;     ///< groups of rows
  std::size_t capacity = 1;  ///< rows of a slot at most, up to 65 535
};

class AllToAll final : public OnePhaseCollective {
 public:
  /// Throws Error (fields "width", "slots" and "capacity") for a room without elements or beyond
  /// what frames count, and as RowCodec.
  AllToAll(GroupMember member, const RowRoom& room, const Encoding& encoding);

  /// Starts. `counts` has p × slots entries, by position and then slot, none above the capacity;
  /// `rows` are those rows in that order. Both must stay until the collective is done.
  void begin(std::span<const std::uint16_t> counts, std::span<const float> rows);
  /// What came, by position and then slot: how many, and the rows in that order. The next `begin`
  /// of this object changes them.
  std::span<const std::uint16_t> counts() const { return counts_in_; }
  /// The rows that came, as `counts` counts them.
  std::span<const float> rows() const { return std::span(rows_in_).first(elements_in_); }
  /// The room for rows from one member to another.
  const RowRoom& room() const { return room_; }

  std::string signature() const override;
  int phases() const override { return members() > 1 ? 1 : 0; }
  std::uint64_t parts() const override;
  /// The most that can be sent and received; volume_of says it for given counts.
  ExchangeVolume volume() const override;
  /// What this node sends with these counts, as `begin` takes them.
  ExchangeVolume volume_of(std::span<const std::uint16_t> counts) const;
  Status complete(const Exchange& exchange) override;

 private:
  std::size_t slots_of_all() const { return static_cast<std::size_t>(members()) * room_.slots; }
  std::size_t count_of(std::span<const std::uint16_t> counts, int at) const;
  Status post() override;
  Parcel encode(int to, std::size_t first_row, std::span<std::byte> out);
  /// Why the payload that came along `edge` is none of ours; OK if it is.
  Status judge(std::size_t edge) const;
  Status take(int from, std::span<const std::byte> payload);
  void take_own(std::size_t first_row);

  RowRoom room_;
  RowCodec codec_;
  std::vector<Edge> others_;
  std::vector<Parcel> parcels_;
  std::span<const std::uint16_t> counts_out_;
  std::span<const float> rows_out_;
  std::vector<std::uint16_t> counts_in_;
  std::vector<float> rows_in_;
  std::size_t elements_in_ = 0;
};

}  // namespace sotto
