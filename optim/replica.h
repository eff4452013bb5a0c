// A vector that one node makes and its neighbours hold, all changing it by the same bytes: the
// models of DCD-PSGD and the estimates of ECD-PSGD.
//
// So that holders notice when they no longer hold the same bits, every payload starts with 8 bytes:
// the version of the vector *before* the update. A version is a chain of XXH3 digests over the
// encodings applied so far, into which the vector itself enters in round 0 and every 64th round
// after it. A missed, repeated or foreign update (another initial model, a checkpoint of another
// time) is found with the very next frame, for a hash of bytes that the frame's checksum reads
// anyway; a decoder that differs between two machines is found within 64 rounds, at 1/64 of the
// cost of hashing every replica in every round.
//
// Building blocks of the algorithms, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/optim/local_node.h>
#include <sotto/optim/mailbox.h>

namespace sotto {

/// What travels in one payload: the version before the update, and C(update).
struct Update {
  static constexpr std::size_t kVersionBytes = sizeof(std::uint64_t);

  std::uint64_t version = 0;
  std::span<const std::byte> encoding;

  std::size_t payload_bytes() const { return kVersionBytes + encoding.size(); }
};

class ModelVersion {
 public:
  /// Rounds from one entry of the whole vector into the chain to the next.
  static constexpr Round kModelPeriod = 64;

  /// The version that stands in front of the update of `round`.
  std::uint64_t before(Round round, std::span<const float> model) const;
  /// Follows an update that was applied.
  void advance(const Update& update);

  void save(ByteBuffer& out) const { out.write(chain_); }
  void load(ByteReader& in) { chain_ = in.read<std::uint64_t>(); }

 private:
  std::uint64_t chain_ = 0;
};

/// What a node holds of neighbour j.
struct Replica {
  Rank peer = 0;
  float weight = 0;  ///< W_ij
  std::vector<float> model;
  ModelVersion version;
};

/// A replica for each in-edge of a static graph, in rank order, all equal to the node's own x: all
/// nodes start from the same model, and if they do not, the first frames' versions tell.
std::vector<Replica> make_replicas(const LocalNode& node);

/// Longest payload of an update of the whole model.
std::size_t max_update_bytes(const LocalNode& node);

/// Writes the version of `model` and C(change) into `payload`.
Update encode_update(LocalNode& node, const ModelVersion& version, std::span<const float> model,
                     std::span<const float> change, std::span<std::byte> payload);

/// The update in the frame just accepted from `replica`. A payload that is too short, or made from
/// another vector than the replica, is refused.
Result<Update> open_update(Mailbox& mail, std::size_t edge, const Replica& replica);

void save_replicas(std::span<const Replica> replicas, ByteBuffer& out);
Status load_replicas(ByteReader& in, std::span<Replica> replicas);

}  // namespace sotto
