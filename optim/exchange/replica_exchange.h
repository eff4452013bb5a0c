// Replicas of the neighbours' vectors over a run, on a graph that may change between rounds, and
// the frames that keep them equal to the originals bit for bit.
//
// The exchange of round t goes along the graph of round t + lead, which is the one in which its
// vectors are mixed next. All nodes know the graph of every round, so both ends of an edge know
// what is due on it:
//   - an *update* C(·), the same bytes to all, along an edge that was there in the exchange before;
//   - the *whole vector*, as it is after the round's update, along an edge that was not: a replica
//     is handed over in full precision. The replica of an edge that is lost is freed. In round 0 no
//     edge counts as new, as all nodes start from the same vector.
// Where every edge is new every round (matchings, hypercubes taken one dimension at a time), all
// frames are whole vectors: the compressor then saves nothing.
//
// Drift. Each update says of which version it is the continuation (replica.h). A holder whose
// replica is of another version does not apply it. It asks for the whole vector with its next frame
// to that neighbour, and gets it with the exchange after that: two exchanges after the mismatch.
// Until then the algorithm mixes its own vector in place of the replica, as if the edge were not
// there: what drifted may be anything, so that the last replica is not safe to use. In round 0,
// when nothing can have drifted yet, a mismatch is a fault: the nodes did not start alike. So it is
// where the edge has no opposite along which to ask.
//
// Payload: the version, 8 bytes. When its lowest bit is set: how many neighbours are asked for
// their whole vectors, 4 bytes, and their ranks, 4 bytes each. Then the encoding of the update, or
// the floats of the vector in a frame with the compressor id of `none`.
//
// A building block of the algorithms, not for users. One thread at a time. Views the node and the
// mailbox, owns the replicas; allocates only in the constructor, and in save. The nodes of a
// simulation share replicas with their owners and each other (shared_models.h), and allocate them
// where they come to differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/exchange/replica.h>
#include <sotto/optim/local_node.h>

namespace sotto {

class ReplicaExchange {
 public:
  /// Holds `start` for every neighbour of round 0. `lead` is 1 when what an exchange brings is
  /// mixed in the next round, and 0 when it is mixed in the same one.
  ReplicaExchange(LocalNode& node, Mailbox& mail, std::span<const float> start, Round lead);

  /// A mailbox with room for updates and whole vectors.
  static Mailbox make_mailbox(const LocalNode& node);

  /// x̂_j of every neighbour in the exchange last posted (of round 0 before that), in rank order.
  std::span<const Replica> held() const { return std::span(pool_).first(held_); }
  /// The vector to mix for a neighbour: its replica, or `own` while that has drifted.
  static std::span<const float> value(const Replica& replica, std::span<const float> own) {
    return replica.good() ? replica.values() : own;
  }

  /// Encodes C(change) of this node's `vector` into the next frame; `prepare` makes `change`, named
  /// `what` in the fault that is returned unless it is finite (NodeEncoder::encode_made).
  Result<Update> encode(std::span<const float> vector, const Compressor::Prepare& prepare,
                        std::span<float> change, std::string_view what);
  /// Posts that frame; `vector` is now with C(change) applied. Turns to the graph of the exchange,
  /// so the round must have been mixed if lead is 1.
  void post(const Update& update, std::span<const float> vector);

  /// Applies the encoding of an update to a replica, or says why it cannot be.
  using Apply = std::function<Status(std::span<const std::byte> encoding, std::span<float> model)>;
  /// Takes the frames of the exchange, which is complete. Faults are those of Mailbox::accept; the
  /// exchange stays open.
  Status accept(const Exchange& exchange, const Apply& apply);

  /// Drifted replicas found so far.
  std::uint64_t drifted() const { return drifted_; }

  /// Appends replicas and versions.
  void save(ByteBuffer& out) const;
  /// Requires that the node has been loaded.
  Status load(ByteReader& in);

 private:
  Rank rank() const { return node_.rank(); }
  const Topology& graph() const { return node_.topology(); }
  /// Turns to `edges`: frees the replicas of other peers, and awaits those of new ones.
  void hold(std::span<const Edge> edges);
  /// Decides what each peer of the exchange is sent; true when some get the whole vector.
  bool choose_parcels(std::span<const Edge> to);
  /// Writes the whole vector into the second parcel, and returns the payload's length.
  std::size_t write_whole(std::span<const float> vector);
  std::size_t write_prefix(std::uint64_t version, std::span<std::byte> payload) const;
  /// Reads the part before the encoding, which says whether the sender asks for this node's whole
  /// vector. Fault::malformed when it is cut short.
  Status read_prefix(std::span<const std::byte> payload, Update& update, bool& asks) const;
  Status take_frame(std::size_t edge, const Apply& apply);
  /// The update continues the replica.
  Status take_update(const Update& update, Replica& replica, const Apply& apply);
  Status take_whole(const Update& update, Replica& replica);
  /// Where replicas are shared, the one that the replica becomes with `version`: another holder's
  /// or the owner's, or else a copy of its own to which `write` writes.
  Status share(Replica& replica, ModelVersion version,
               const std::function<Status(std::span<float> model)>& write);
  /// Marks a replica as drifted, unless no node can be asked for the vector.
  Status mark_drifted(Replica& replica);

  LocalNode& node_;
  Mailbox& mail_;
  Round lead_;
  SharedModels* shared_;    // null: replicas are the node's own
  SharedModels::Held own_;  // this node's vector, as others share it; null before it is posted
  ModelVersion version_;    // version of this node's vector
  std::vector<Replica> pool_;
  std::size_t held_ = 0;
  std::vector<Rank> asking_;         // peers that the next frame asks
  std::vector<Rank> asked_by_;       // peers that asked with the exchange last done
  std::vector<std::uint16_t> due_;   // compressor ids of the frames due, by edge
  std::vector<std::size_t> choice_;  // parcel of each frame to send, by edge
  std::uint64_t drifted_ = 0;
};

}  // namespace sotto
