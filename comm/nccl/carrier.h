// Carries exchanges over one communicator: each is one group of sends and receives.
//
// NCCL wants both ends of a message to name the same length. So a group begins only when everybody
// it hears from has announced how long their frames are (announce()); it also spares a group that
// would wait for the frame of a node that died before it posted, which only an abort of all could
// end. A frame or a room in the device's memory is used where it lies; those of the host go through
// pinned memory.
//
// Groups run in the order of add(), one after the other, and so nodes must add exchanges in orders
// that agree. While one is on the wire the next is staged behind it on the stream.
//
// Nothing here waits. Thread safety: one thread, the device's. Ownership: the communicator and all
// staging memory; frames and rooms stay the caller's, and are touched until take() returns their
// exchange or stop() has returned.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/comm/deadline.h>

#include "api.h"

namespace sotto::internal {

/// Frames of one pair of nodes, seen from one of them.
struct FrameCounts {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// An exchange whose group is done.
struct Carried {
  struct Frame {
    Rank from;
    Result<std::size_t> bytes;  ///< length of the frame in its room; a fault if the header is wrong
  };
  Exchange exchange;
  std::vector<Frame> frames;
};

class Carrier {
 public:
  /// Makes a carrier; `to` and `from` have the longest frame of each peer in bytes. Takes the
  /// communicator, also when it fails.
  static Result<std::unique_ptr<Carrier>> make(std::shared_ptr<Device> device,
                                               std::shared_ptr<NcclApi> api,
                                               Communicator communicator,
                                               const std::map<Rank, std::size_t>& to,
                                               const std::map<Rank, std::size_t>& from);
  /// stop() must have been called.
  ~Carrier();
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  void add(Exchange exchange) { waiting_.push_back(std::move(exchange)); }
  /// Announces the length of the peer's next frame, after those it announced before: a header at
  /// least, and at most what the carrier was made with.
  void announce(Rank peer, std::size_t bytes) { announced_[peer].push_back(bytes); }
  /// Does what can be done now; true if that was anything. A fault is the communicator's: nothing
  /// under way will end, and only stop() is left to do.
  Result<bool> advance();
  /// The oldest exchange that is done and was not taken.
  std::optional<Carried> take();

  /// True when nothing waits or is under way.
  bool idle() const { return waiting_.empty() && running_.empty(); }
  /// Whether frames of the carrier move, or may at any time.
  bool under_way() const { return !running_.empty(); }
  /// A group that is under way includes the peer.
  bool holds(Rank peer) const;
  /// Frames exchanged with the peer: done, under way and waiting.
  FrameCounts committed(Rank peer) const;
  /// Frames exchanged with the peer that are done.
  FrameCounts done(Rank peer) const;

  /// The peer leaves or gave up, and takes part in no more than this: `sent` by it, `received` by
  /// it.
  void limit(Rank peer, const FrameCounts& theirs) { limits_[peer] = theirs; }
  /// A peer that left, and that the next exchange would need once more.
  std::optional<Rank> missed_next() const;
  /// A peer that left, and for which the oldest group under way waits in vain.
  std::optional<Rank> missed_now() const;
  /// The peer is lost: what waits is carried without it.
  void drop(Rank peer);

  /// Flushes what is done but may still be in NCCL's own buffers; true when that is over.
  Result<bool> flush();
  /// Ends the communicator and waits until the device touches nothing more, to the deadline.
  void stop(Deadline deadline);

 private:
  static constexpr std::size_t kLanes = 2;
  struct Slot {
    DeviceMemory host;
    DeviceMemory device;
  };
  /// The resources of one group under way.
  struct Lane {
    std::map<Rank, Slot> to;
    std::map<Rank, Slot> from;
    DeviceEvent done = nullptr;
  };
  /// The length of a frame to receive, and whether its room is the device's.
  struct Incoming {
    std::size_t bytes = 0;
    bool on_device = false;
  };
  struct Running {
    Exchange exchange;
    std::vector<Incoming> incoming;  ///< lengths and places by receive
    std::size_t lane = 0;
    bool launched = false;  ///< NCCL has put it on the stream, and its `done` is marked behind it
  };

  Carrier(std::shared_ptr<Device> device, std::shared_ptr<NcclApi> api, Communicator communicator)
      : device_(std::move(device)), api_(std::move(api)), communicator_(communicator) {}
  Status allocate(const std::map<Rank, std::size_t>& to, const std::map<Rank, std::size_t>& from);
  Result<Slot> make_slot(std::size_t bytes);
  /// True when the lengths of all frames that it is to get are known.
  bool announced(const Exchange& exchange) const;
  Status begin(Exchange exchange);
  /// The frame where the device can read it.
  Result<std::span<const std::byte>> stage(const Send& send, const Slot& slot);
  /// The memory in which a frame is received: its room, if that lies on the device and it fits.
  static std::span<std::byte> landing(const Receive& receive, const Slot& slot,
                                      const Incoming& incoming);
  /// Puts copies out of the slots, and the mark, behind the group.
  Status follow(const Running& group);
  /// The frame, of which the host has seen what it needs, brought to its room: its length.
  static Result<std::size_t> unpack(const ExchangeTag& tag, const Receive& receive,
                                    const Slot& slot, const Incoming& incoming);
  void finish();
  std::optional<Rank> missed(const Exchange& exchange) const;

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<NcclApi> api_;
  Communicator communicator_;
  DeviceStream stream_ = nullptr;
  std::array<Lane, kLanes> lanes_;
  std::size_t groups_ = 0;  ///< groups begun so far
  std::deque<Exchange> waiting_;
  /// Lengths of announced frames without a group yet, by peer.
  std::map<Rank, std::deque<std::size_t>> announced_;
  std::deque<Running> running_;
  std::deque<Carried> carried_;
  std::map<Rank, FrameCounts> done_;
  std::map<Rank, FrameCounts> limits_;
  bool flushing_ = false;
  bool flushed_ = false;
};

}  // namespace sotto::internal
