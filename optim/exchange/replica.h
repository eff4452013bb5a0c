// A vector that one node makes and its neighbours hold, all changing it by the same bytes: the
// models of DCD-PSGD, the estimates of ECD-PSGD, the public copies of CHOCO-SGD.
//
// So that holders notice when they no longer hold the same bits, every payload starts with the
// version of the vector *before* the update (replica_exchange.h says what else it may hold). A
// version is a chain of XXH3 digests over the encodings applied so far, into which the vector
// itself enters in round 0 and every 64th round after it. A missed, repeated or foreign update
// (another initial model, a checkpoint of another time) is found with the very next frame, for a
// hash of bytes that the frame's checksum reads anyway; a decoder that differs between two
// machines, or a flipped bit, is found within 64 rounds, at 1/64 of the cost of hashing every
// replica in every round.
//
// Building blocks of the algorithms, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/kernels/vector.h>
#include <sotto/optim/exchange/shared_models.h>

namespace sotto {

/// The fields of a payload before its encoding.
struct Update {
  std::uint64_t version = 0;  ///< version before the update
  std::span<const std::byte> encoding;
  /// Length with all that stands in front of the encoding, in bytes.
  std::size_t payload_bytes = 0;
};

/// The lowest bit of a version is 0: on the wire it is a flag.
class ModelVersion {
 public:
  /// Rounds from one entry of the whole vector into the chain to the next.
  static constexpr Round kModelPeriod = 64;

  ModelVersion() = default;
  /// The version of a vector that was handed over whole.
  explicit ModelVersion(std::uint64_t chain) : chain_(chain) {}

  std::uint64_t chain() const { return chain_; }
  /// The version that stands in front of the update of `round`; `model` is a vector of `ops`.
  std::uint64_t before(Round round, std::span<const float> model, const Ops& ops) const;
  /// Follows an update that was applied.
  void advance(const Update& update);

 private:
  std::uint64_t chain_ = 0;
};

/// Whether a replica can be mixed, and if not, which message is due for it.
enum class ReplicaState : std::uint8_t {
  good = 0,
  drifted = 1,  ///< the replica's owner must be asked for the whole vector
  /// The owner is asked with the exchange under way; what comes in it is still an update.
  asked = 2,
  awaited = 3,  ///< the whole vector comes with the exchange under way
};

/// A node's replica of neighbour j's vector.
struct Replica {
  static constexpr Rank kNobody = -1;

  Rank peer = kNobody;
  float weight = 0;  ///< W_ij
  Vector model;      ///< empty where `shared` is set
  /// In place of `model`, where the nodes of a simulation share what they hold.
  SharedModels::Held shared;
  ModelVersion version;
  ReplicaState state = ReplicaState::good;

  bool good() const { return state == ReplicaState::good; }
  std::span<const float> values() const { return shared ? shared->values : model; }
};

/// All of a replica but its weight, which is the graph's.
void save_replica(const Replica& replica, ByteBuffer& out);
/// Takes it back into a replica of the same peer.
Status load_replica(ByteReader& in, Replica& replica);

}  // namespace sotto
