// The driver: one algorithm over one transport. It hands over the exchanges that the algorithm asks
// for, feeds it the frames that arrive, counts what is sent, and turns each fault into a Status
// that names the peer.
//
// With overlap, its ExchangeCarrier carries exchanges on a thread of its own while the caller
// computes its gradient (algorithm.h says what may run in parallel), and while it encodes further
// buckets; without, the caller's thread does inside the calls below. Results are the same, bit for
// bit.
//
// Thread safety: one caller's thread. Ownership: algorithm and transport are the caller's and must
// outlive the driver; until then other code may only read parameters().
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/comm/transport.h>
#include <sotto/compress/accelerator.h>
#include <sotto/optim/algorithm.h>
#include <sotto/trainers/observer.h>

namespace sotto {

namespace internal {
class ExchangeCarrier;
}  // namespace internal

/// Traffic of one directed edge, counted on frames as sent, headers included.
struct LinkTraffic {
  Rank from = 0;
  Rank to = 0;
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;
};

/// The division of a node's time, in seconds.
struct DriverTimes {
  /// Time in the algorithm, on either thread: compressing, decoding, mixing.
  double algorithm_s = 0;
  double wait_s = 0;  ///< time in which the caller's thread waited for peers, decoding not counted
};

/// How a driver works.
struct DriverOptions {
  Rank rank = 0;
  bool overlap = true;
  /// How long a peer may be silent before it counts as failed. It must cover the slowest node's
  /// gradient.
  std::chrono::milliseconds timeout{60'000};
  /// Receives the phases of communication, if it wants them; null: no observer.
  Observer* observer = nullptr;
  /// The algorithm's (AlgorithmSetup::terms), where they may change; null: they do not.
  std::shared_ptr<RoundTerms> terms = {};
  /// Is asked now and then while an exchange waits for frames of these nodes, on the thread that
  /// carries; a fault ends the run. Empty: no check.
  std::function<Status(std::span<const Rank>)> wait_fault = {};
  /// The reason of another node that gave up, which names that node and ends the run here, too.
  /// Asked as wait_fault, before it. Empty: nobody can be told one.
  std::function<Status()> given_up = {};
  /// Ends every wait for peers with Fault::stopped, and the run with it. Asked on the caller's
  /// thread alone.
  StopRequest interrupted = {};
  /// The accelerator in whose memory the algorithm's vectors lie; null: they lie with the host. Its
  /// work is put after the caller's and the caller's after it, and its faults end the run.
  Accelerator* accelerator = nullptr;
};

class Driver {
 public:
  /// Posts nothing yet; both objects must outlive the driver.
  Driver(Algorithm& algorithm, Transport& transport, const DriverOptions& options);
  /// Ends the thread promptly, also in the middle of an exchange.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // The first fault ends the run: every later call returns it again. Only a gradient that the
  // algorithm refuses (Fault::non_finite) leaves the round open for another one.

  /// Starts a round. Afterwards the gradient is to be taken at algorithm.parameters().
  Status begin_round();
  /// Hands over the gradient of the round and returns once the model of the next round is
  /// complete. Requires begin_round before it.
  Status gradient_ready(std::span<const float> gradient);
  /// Hands over the gradient from parameter `first` on, while others are still computed, for an
  /// algorithm that takes_parts(); end_parts, after the last one, returns once the model is ready.
  /// In between parameters may move that have been in a part. With overlap the exchanges of buckets
  /// that are complete are under way from then on; without, from end_parts on.
  Status gradient_part(std::size_t first, std::span<const float> part);
  /// All parts have been handed over; returns once the model of the next round is complete.
  Status end_parts();
  /// Sets the stamp of this node's step settings in its frames (round_terms.h), from the next
  /// gradient on.
  void change_settings(SettingsStamp stamp) { next_settings_ = stamp; }
  /// Neighbours that were found to step with other settings since the last call.
  std::vector<SettingsDifference> take_differences();
  /// Algorithm::take_warnings.
  std::vector<std::string> take_warnings();
  /// Waits until no exchange is under way. After gradient_ready the algorithm is then idle.
  Status drain();
  /// Call it in waits outside rounds: Fault::peer_lost where the transport has lost `awaited`, or,
  /// for other nodes that wait for node 0, which waits for all, any neighbour. Nothing else notices
  /// it while no exchange is under way; OK where one is.
  Status lost_neighbour(Rank awaited);

  /// The fault that has ended the run; OK as long as none has.
  Status status() const;
  /// Traffic to each peer that this node sends to, sorted by peer. Exact after drain.
  std::vector<LinkTraffic> traffic() const;
  /// Time spent so far, by activity.
  DriverTimes times() const;
  /// The algorithm's counters. Exact after drain.
  AlgorithmCounters counters() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Time = PhaseSpan::Time;
  /// Returns once `ready` holds or the run has failed.
  Status wait_until(Lock& lock, const std::function<bool()>& ready);
  /// Hands over all that the algorithm wants carried now. `first` says whether next_ holds the
  /// first of it already.
  Status start_exchanges(Result<bool> first);
  class Timed;
  /// Asks the algorithm for its next exchange, into next_; false if none is due.
  Result<bool> next_exchange();
  /// Does so at the end of what `timed` times, which is hidden where none is due.
  Result<bool> next_exchange(Timed& timed);
  /// Begins to take a gradient: no frame of a round before it is made any more.
  void apply_settings();
  /// gradient_ready, once the algorithm accepts one.
  Status take_gradient(Lock& lock, std::span<const float> gradient);
  /// Carries all that is under way, and what follows from it, where the carrier has no thread.
  void carry_here(Lock& lock);
  /// Called on the thread that carries: feeds the complete exchange to the algorithm, and starts
  /// its next ones.
  Status complete(const Exchange& exchange);
  /// A fault has ended all that was under way.
  void fail(Status status);
  /// `status` with this node and the algorithm's round.
  Status named(const Status& status) const;

  void count_sends(const Exchange& exchange);

  /// Notes a fault of the accelerator as the run's, from which all others follow. Returns what
  /// stands: that fault, or `otherwise` where there is none.
  Status note_accelerator_fault(Status otherwise = {});
  /// What `work` returns, which is done in order with the caller's own on the accelerator; where
  /// that has a fault, the fault.
  template <typename Work>
  Status on_accelerator(const Work& work);
  /// Tells the observer of a phase that ends now.
  void tell(RunPhase phase, Round round, Time from, Time until) const;
  /// Counts a wait since `start`, when the time in the algorithm was `encoded` seconds.
  void count_wait(Time start, double encoded, Round round);

  Algorithm& algorithm_;
  const DriverOptions options_;
  Observer* const observer_;  ///< null: no observer of phases

  mutable std::mutex mutex_;  ///< guards the members below, and every call of the algorithm
  std::condition_variable progress_;
  /// Condition that the caller's thread waits for; empty: it does not wait.
  std::function<bool()> awaited_;
  Exchange next_;
  /// Settings from the next gradient on; only for the caller's thread.
  SettingsStamp next_settings_ = kAsAgreed;
  bool parts_ = false;         ///< parts of this round's gradient were taken
  std::size_t under_way_ = 0;  ///< exchanges handed over and not delivered
  Status status_;
  std::vector<LinkTraffic> traffic_;
  DriverTimes times_;

  /// Carries what is handed over. Its lock is taken after mutex_: exchanges are posted while the
  /// algorithm is at work.
  std::unique_ptr<internal::ExchangeCarrier> carrier_;
};

}  // namespace sotto
