// Rows that go round a ring: one hop, to the next member and from the one before.
//
// Rows are encoded by their owner, each by itself (row_codec.h), and passed on byte for byte: all
// members that they come to hold the same bits, one encoding away from the original, however long
// the ring is.
//
// A building block of programs, as Collective. One thread at a time; allocates only in the
// constructor. The codec must outlive the hop, and the spans of `begin` what is under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sotto/groups/collective.h>
#include <sotto/groups/row_codec.h>

namespace sotto {

/// How many rows a member sends and receives in one hop.
struct HopRows {
  std::size_t out = 0;   ///< sent
  std::size_t in = 0;    ///< received
  std::size_t most = 0;  ///< at any member, in any hop
};

class RingHop final : public OnePhaseCollective {
 public:
  /// A hop of a group of 2 members or more. `what` names the rows for messages and the signature.
  RingHop(GroupMember member, std::string what, const HopRows& rows, RowCodec& codec);

  /// Encodes rows of this member's own into `out`, at most HopRows::most. Fault::non_finite for
  /// rows that are not finite.
  Status encode(std::span<const float> rows, std::span<std::byte> out);
  /// Starts: `out` is sent, as it is. What comes is copied to `in`, which may be the memory of
  /// `out`, and decoded into `rows`. Each has exactly the bytes and elements of its rows.
  void begin(std::span<const std::byte> out, std::span<std::byte> in, std::span<float> rows);

  std::string signature() const override;
  int phases() const override { return 1; }
  std::uint64_t parts() const override { return rows_.most; }
  ExchangeVolume volume() const override;
  Status complete(const Exchange& exchange) override;

 private:
  Status post() override;
  EdgeVolume volume_of(std::size_t rows) const;
  /// Decodes the payload that came; why it is none of ours, or OK.
  Status decode();

  std::string what_;
  HopRows rows_;
  RowCodec* codec_;
  std::vector<Edge> to_;
  std::vector<Edge> from_;
  std::span<const std::byte> out_;
  std::span<std::byte> in_;
  std::span<float> rows_in_;
};

}  // namespace sotto
