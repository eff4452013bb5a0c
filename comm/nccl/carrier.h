// Carries exchanges over one communicator: each is one group of sends and receives.
//
// NCCL wants both ends of a message to name the same length before either knows it. So the messages
// of an edge are all as long as its longest frame, and the frame's own header says how much of one
// counts. A frame or a room in the device's memory is used where it lies if it is as long as that,
// and through a copy on the device otherwise; those of the host go through pinned memory.
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
    Result<std::size_t> bytes;  ///< in its room; a fault where its header lies
  };
  Exchange exchange;
  std::vector<Frame> frames;
};

class Carrier {
 public:
  /// Messages to and from each peer have so many bytes. Takes the communicator, also when it fails.
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
  /// Does what can be done now; true if that was anything. A fault is the communicator's: nothing
  /// under way will end, and only stop() is left to do.
  Result<bool> advance();
  /// The oldest exchange that is done and was not taken.
  std::optional<Carried> take();

  /// True when nothing waits or is under way.
  bool idle() const { return waiting_.empty() && running_.empty(); }
  /// Its frames move, or may at any time.
  bool under_way() const { return !running_.empty(); }
  /// A group that is under way includes the peer.
  bool holds(Rank peer) const;
  /// Of the peer, done, under way and waiting.
  FrameCounts committed(Rank peer) const;
  /// Of the peer, done.
  FrameCounts done(Rank peer) const;

  /// The peer leaves or gave up, and takes part in no more than this: `sent` by it, `received` by
  /// it.
  void limit(Rank peer, const FrameCounts& theirs) { limits_[peer] = theirs; }
  /// One who left, whom the next exchange would need once more.
  std::optional<Rank> missed_next() const;
  /// One who left, for whom the oldest group under way waits in vain.
  std::optional<Rank> missed_now() const;
  /// The peer is lost: what waits and needs it will never be carried. Others that it needs and who
  /// leave are missed all the same.
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
  /// What one group needs for itself.
  struct Lane {
    std::map<Rank, Slot> to;
    std::map<Rank, Slot> from;
    DeviceEvent done = nullptr;
  };
  struct Running {
    Exchange exchange;
    std::size_t lane = 0;
    bool launched = false;  ///< NCCL has put it on the stream, and its `done` is marked behind it
  };

  Carrier(std::shared_ptr<Device> device, std::shared_ptr<NcclApi> api, Communicator communicator)
      : device_(std::move(device)), api_(std::move(api)), communicator_(communicator) {}
  Status allocate(const std::map<Rank, std::size_t>& to, const std::map<Rank, std::size_t>& from);
  Result<Slot> make_slot(std::size_t bytes);
  Status begin(Exchange exchange);
  /// What is sent for a frame: as long as the edge's messages.
  Result<std::span<const std::byte>> stage(const Send& send, const Slot& slot);
  /// True when a message can be received where its room lies.
  bool direct(const Receive& receive, const Slot& slot) const;
  /// Behind the group: copies out of the slots, and the mark.
  Status follow(const Running& group);
  Result<std::size_t> unpack(const ExchangeTag& tag, const Receive& receive, const Slot& slot);
  void finish();
  std::optional<Rank> missed(const Exchange& exchange) const;

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<NcclApi> api_;
  Communicator communicator_;
  DeviceStream stream_ = nullptr;
  std::array<Lane, kLanes> lanes_;
  std::size_t groups_ = 0;  ///< begun so far
  std::deque<Exchange> waiting_;
  std::vector<Exchange> dropped_;  ///< without those who are lost
  std::deque<Running> running_;
  std::deque<Carried> carried_;
  std::map<Rank, FrameCounts> done_;
  std::map<Rank, FrameCounts> limits_;
  bool flushing_ = false;
};

}  // namespace sotto::internal
