// The communication half of a driver: carries exchanges over a transport.
//
// The driver hands over what its algorithm wants exchanged. The carrier posts it, notes the frames
// that arrive, and gives back each exchange that is complete. With overlap a thread of its own does
// so; without, the caller's thread does, within hand_over and carry. A fault ends all that is under
// way, and names node, peer and round.
//
// Thread safety: hand_over and lost_neighbour may be called from any thread, also under a lock of
// the caller's that its handlers take: the carrier calls those without holding its own.
// Ownership: transport and options are the caller's, and must outlive it.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/comm/transport.h>
#include <sotto/trainers/driver.h>
#include <sotto/trainers/observer.h>

namespace sotto::internal {

/// `status` of a node with these options, with the node in front of it and, unless it is of a
/// deadline, the round.
Status named_status(const Status& status, const DriverOptions& options, Round round);

/// Handlers of exchanges, called on the thread that carries.
struct CarrierHandlers {
  /// All of the exchange was sent and has come. May hand over further ones. A fault ends all that
  /// is under way.
  std::function<Status(const Exchange&)> complete;
  /// A fault has ended the run, of `complete` or of the transport: nothing is under way any more.
  std::function<void(Status)> failed;
};

class ExchangeCarrier {
 public:
  /// Starts the thread, if `options` ask for overlap. Throws Shortage where the system gives none.
  ExchangeCarrier(Transport& transport, const DriverOptions& options, CarrierHandlers handlers);
  /// Stops the carrier.
  ~ExchangeCarrier() { stop(); }
  ExchangeCarrier(const ExchangeCarrier&) = delete;
  ExchangeCarrier& operator=(const ExchangeCarrier&) = delete;

  /// Ends the thread promptly, also in the middle of an exchange, and waits for its end. Nothing is
  /// to be handed over afterwards.
  void stop();

  /// True when the carrier has a thread of its own.
  bool threaded() const { return thread_.joinable(); }
  /// True on that thread.
  bool on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

  /// Takes the exchange, and gives the memory of an older one for it. With a thread it is posted
  /// there; `yield` says that the caller gives way to that. Without, it is posted here, and what is
  /// returned says how that went.
  Status hand_over(Exchange& exchange, bool yield);
  /// Carries exchanges until none is left, or a fault has ended them. Requires !threaded().
  void carry();
  /// Fault::peer_lost where the transport has lost `awaited`, or, for other nodes that wait for
  /// node 0, which waits for all, any neighbour. OK while an exchange is under way: then the thread
  /// that carries notices.
  Status lost_neighbour(Rank awaited);

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// An exchange under way.
  struct Carried {
    Exchange exchange;
    PhaseSpan::Time posted{};  ///< time of posting, where an observer is told
  };
  using Exchanges = std::list<Carried>;

  // On the thread that carries.
  /// The thread's life.
  void serve();
  Status carry_all();
  /// Posts the exchanges in the outbox.
  Status post();
  /// Waits for the next event and handles it.
  Status handle_event();
  /// The transport's next event; meanwhile given_up and wait_fault of the options are asked.
  Result<TransportEvent> await_event(Round round);
  /// Gives back the complete exchange.
  Status complete(Exchanges::iterator done);
  /// The deadline by which a peer must have done something, or the caller's thread, if it waits, be
  /// interrupted.
  Deadline patience() const;
  /// Nodes that still owe frames.
  std::vector<Rank> missing() const;
  Exchanges::iterator find(const ExchangeTag& tag);
  void note_lost(const TransportEvent& event);
  /// Tells the observer of an exchange that is complete now.
  void tell_wire(const Carried& carried) const;

  Transport& transport_;
  const DriverOptions& options_;
  const CarrierHandlers handlers_;
  Observer* const observer_;  ///< null: no observer of phases

  std::mutex mutex_;  ///< guards the members up to stopping_
  std::condition_variable wake_;
  Exchanges outbox_;
  Exchanges spare_;
  std::map<Rank, std::string> lost_;  ///< lost neighbours, and how the loss was noticed
  bool idle_ = true;                  ///< the thread waits for wake_, and not in the transport
  bool stopping_ = false;

  // Only the thread that carries uses these.
  Exchanges posted_;                         ///< exchanges under way, the oldest first
  Deadline deadline_ = Deadline::after({});  ///< deadline of the next event
  std::thread thread_;
};

}  // namespace sotto::internal
