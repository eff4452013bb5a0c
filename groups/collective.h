// An exchange among the members of a group, in one or several phases: what all collectives share.
//
// A program (program.h) places its collectives in one list, which gives each its phases of the
// round. A collective is begun by its own `begin`, whose arguments are its data; from then on it is
// `busy` until all its phases are done. Like an Algorithm it is sans-IO: it asks for exchanges and
// takes the frames that have come.
//
// Building blocks of programs. One thread at a time; allocates only in the constructor. The node,
// and the data of `begin`, must outlive what is under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/groups/node_grid.h>
#include <sotto/groups/volume.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/local_node.h>

namespace sotto {

/// A node as a member of one group. It views the node.
struct GroupMember {
  LocalNode* node = nullptr;
  Group group;
  /// Frames that collectives of one owner share, which run one after the other; null: each has its
  /// own.
  std::shared_ptr<FrameRoom> frames = {};

  /// The edge to the member at `position`.
  Edge edge(int position) const { return {group.rank_of(position), 1}; }
  /// Number of members but this one.
  std::size_t others_count() const { return static_cast<std::size_t>(group.size() - 1); }
  /// Edges to all members but this one, ascending.
  std::vector<Edge> others() const;
  /// The index in others() of the member at `position`, which is not this one.
  std::size_t other(int position) const {
    return static_cast<std::size_t>(position < group.position ? position : position - 1);
  }
};

/// What a program numbers throughout a round.
struct RoundPlace {
  int phase = 0;           ///< number of the collective's first phase
  std::uint32_t part = 0;  ///< number of its first rounding (LocalNode::rounding_key)
};

class Collective {
 public:
  virtual ~Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  /// The kind, form, sizes and compressor: what every member must have alike.
  virtual std::string signature() const = 0;
  /// Number of phases, the same at every member.
  virtual int phases() const = 0;
  /// Number of roundings, the same at every member.
  virtual std::uint64_t parts() const = 0;
  /// What this node sends and receives each time.
  virtual ExchangeVolume volume() const = 0;
  /// The longest frame, the same at every member.
  std::size_t max_frame_bytes() const { return mail_.max_frame_bytes(); }
  /// Frames that one peer may have under way to this node, the same at every member.
  std::size_t frames_a_peer() const { return static_cast<std::size_t>(phases()); }
  /// The group whose members take part.
  const Group& group() const { return member_.group; }

  /// Gives the collective its place in the round. Call before the first use.
  void place(const RoundPlace& place) { place_ = place; }

  /// An exchange is under way.
  bool open() const { return mail_.open(); }
  /// The collective has begun, and is not done.
  virtual bool busy() const = 0;
  /// The exchange under way is the last that it has for this node.
  virtual bool on_last_phase() const = 0;
  /// Writes the exchange of this node's next phase to `out`; false where none is left, or one is
  /// open(). Fault::non_finite for data that are not finite.
  virtual Result<bool> next_exchange(Exchange& out) = 0;
  /// Takes the exchange under way, as Algorithm::complete.
  virtual Status complete(const Exchange& exchange) = 0;

  /// Number of frames refused.
  std::uint64_t bad_frames() const { return mail_.bad_frames(); }
  /// Number of elements that the compressor clamped.
  std::uint64_t saturated() const { return saturated_; }
  /// Appends what the collective remembers from round to round.
  virtual void save(ByteBuffer& /*out*/) const {}
  /// Takes back what save wrote of an equal collective.
  virtual Status load(ByteReader& /*in*/) { return {}; }

 protected:
  /// A collective of the member's group, with room for its frames' payloads.
  Collective(GroupMember member, std::size_t senders, const std::vector<std::size_t>& parcel_bytes)
      : member_(std::move(member)), mail_(node(), senders, parcel_bytes, member_.frames.get()) {}

  const LocalNode& node() const { return *member_.node; }
  int position() const { return member_.group.position; }
  int members() const { return member_.group.size(); }
  /// The tag of the collective's phase number `phase`.
  ExchangeTag tag(int phase) const {
    return {.round = node().round(),
            .phase = static_cast<std::uint16_t>(place_.phase + phase),
            .bucket = member_.group.bucket()};
  }
  /// The key of the collective's rounding number `part`.
  RandomKey key(std::uint64_t part) const {
    return node().rounding_key(place_.part + static_cast<std::uint32_t>(part));
  }

  GroupMember member_;
  RoundPlace place_;
  Mailbox mail_;
  std::uint64_t saturated_ = 0;
};

/// A collective of one exchange: its own `begin` calls begin_exchange, and `post` makes it.
class OnePhaseCollective : public Collective {
 public:
  bool busy() const final { return open() || begun_; }
  bool on_last_phase() const final { return open(); }
  Result<bool> next_exchange(Exchange& out) final;

 protected:
  using Collective::Collective;

  /// The data are there: the exchange is to be posted. Requires !busy().
  void begin_exchange();
  /// Encodes what is sent, and posts the exchange in mail_.
  virtual Status post() = 0;

 private:
  bool begun_ = false;  // the exchange has begun, and is not posted yet
};

}  // namespace sotto
