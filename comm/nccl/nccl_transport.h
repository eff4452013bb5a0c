// Exchanges between GPUs through NCCL, each a group of sends and receives.
//
// A thread of the transport's own launches groups and looks how they fare, so that a node serves
// its peers while its program computes. What carries frames is carrier.h; which peers are still
// there is known from control_links.h.
//
// All nodes share one communicator, and an abort ends all of it. So a node that loses a peer in the
// middle of a group loses all its peers with it: the one at fault first, then the others, with the
// reason. A peer that is lost while no group needs it costs only the exchanges with it.
//
// Nodes must post their exchanges in orders that agree, as groups run one after the other, and each
// exchange whole; frames of an exchange are reported when all of it is done, and leave their sender
// when the receive is posted. Device memory that is posted must be ready, and is looked at until
// the exchange is done or the transport is gone.
//
// Thread safety and ownership: as Transport.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <sotto/comm/transport.h>

#include "../internal/ledger.h"
#include "carrier.h"
#include "control_links.h"

namespace sotto::internal {

/// The links that stand when all nodes have met; empty for a node that is alone.
struct NcclLinks {
  std::shared_ptr<Device> device;
  std::unique_ptr<ControlLinks> control;
  std::unique_ptr<Carrier> carrier;
  std::vector<News> early;  ///< news that came before the transport was ready
};

/// Over `device` and `api`; make_nccl_transport (backends.h) gives it the real ones.
Result<std::unique_ptr<Transport>> make_nccl_transport(const TransportOptions& options,
                                                       std::shared_ptr<Device> device,
                                                       std::shared_ptr<NcclApi> api);

class NcclTransport final : public Transport {
 public:
  /// `options` must be those that the control links were made with, and outlive nothing but this.
  NcclTransport(std::unique_ptr<TransportOptions> options, NcclLinks links);
  ~NcclTransport() override;
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  std::string_view name() const override { return "nccl"; }
  Status post(const Exchange& exchange) override;
  Result<TransportEvent> poll(Deadline deadline) override;
  void interrupt() override;

 private:
  using Duration = Deadline::Clock::duration;
  /// A neighbour, as it has told of itself and as it was judged.
  struct Peer {
    std::optional<FrameCounts> left;     ///< it leaves in good order, and counts these frames
    bool thanked = false;                ///< it was told that all its frames are here
    std::uint64_t taken = 0;             ///< frames of ours that it said it has
    std::optional<std::string> gave_up;  ///< it aborted the communicator, and why
    /// It left or gave up: how long our part with it may take.
    std::optional<Deadline> patience;
    bool lost = false;
  };

  // All of the thread's.
  void run();
  Duration pause(bool moved);
  /// Hands what was posted to the carrier; begins to leave when the transport is to go.
  void take_posted();
  void begin_to_leave();
  /// True when nothing is left to do before this node is gone.
  bool may_go();
  void hear(const News& news);
  /// Looks for needed peers that left, or stay away.
  void look_for_missing();
  /// True when something moved.
  bool carry();
  void deliver(const Carried& carried);
  /// Why the peer gave up; else `of_leaving`.
  std::string reason_of(Rank peer, const char* of_leaving) const;
  /// Tells peers that leave that all their frames are here.
  void acknowledge();
  /// The peer is gone; what is under way with it ends all.
  void lose(Rank peer, const std::string& reason);
  /// The peer is gone, unless something under way includes it.
  void lose_unless_held(Rank peer, const std::string& reason);
  /// Tells the peer that nothing more of it is taken, because of `cause`: itself, where it lied.
  void turn_away(Rank peer, Rank cause);
  /// Ends the communicator, because of `cause`, or of this node's own device where that is itself.
  void give_up(Rank cause, const std::string& reason);
  void report_loss(Rank peer, const std::string& reason);

  const std::unique_ptr<TransportOptions> options_;
  NcclLinks links_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Ledger ledger_;
  std::deque<Exchange> posted_;
  bool interrupted_ = false;
  bool closing_ = false;

  std::map<Rank, Peer> peers_;  ///< all neighbours
  struct Broken {
    std::string reason;
    Deadline patience;  ///< time to wait for news of the peer that caused it
  };
  std::optional<Broken> broken_;  ///< failure of NCCL or CUDA
  bool given_up_ = false;
  std::optional<Deadline> leaving_;
  Duration pause_{};
  std::thread thread_;
};

}  // namespace sotto::internal
