// The driver: one algorithm over one transport. It posts the exchanges that the algorithm asks for,
// feeds it the frames that arrive, counts what is sent, and turns whatever goes wrong into a Status
// that names the peer.
//
// With overlap, exchanges are carried by a thread of the driver's own while the caller computes its
// gradient (algorithm.h says what may run in parallel); without, by the caller's thread inside the
// calls below. Results are the same, bit for bit.
//
// Thread safety: one caller's thread. Ownership: algorithm and transport are the caller's and must
// outlive the driver; meanwhile nobody else may use them, but for reading parameters().
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/comm/transport.h>
#include <sotto/optim/algorithm.h>

namespace sotto {

/// What went over one directed edge, counted on frames as sent, headers included.
struct LinkTraffic {
  Rank from = 0;
  Rank to = 0;
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;
};

/// Where a node's time went, in seconds.
struct DriverTimes {
  double encode_s = 0;  ///< in the algorithm, on either thread: compressing, decoding, mixing
  double wait_s = 0;    ///< the caller's thread waited for peers, decoding not counted
};

struct DriverOptions {
  Rank rank = 0;
  bool overlap = true;
  /// How long a peer may be silent before it counts as failed. It must cover the slowest node's
  /// gradient.
  std::chrono::milliseconds timeout{60'000};
};

class Driver {
 public:
  Driver(Algorithm& algorithm, Transport& transport, const DriverOptions& options);
  /// Ends the thread promptly, also in the middle of an exchange.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // The first fault ends the run: every later call returns it again. Only a gradient that the
  // algorithm refuses (Fault::non_finite) leaves the round open for another one.

  /// Starts a round. Afterwards the gradient is to be taken at algorithm.parameters().
  Status begin_round();
  /// Hands over the gradient of the round and returns once the model of the next is there. Requires
  /// begin_round before it.
  Status gradient_ready(std::span<const float> gradient);
  /// Waits until no exchange is under way. After gradient_ready the algorithm is then idle.
  Status drain();

  /// Per peer that this node sends to, sorted by peer. Exact after drain.
  std::vector<LinkTraffic> traffic() const;
  DriverTimes times() const;
  AlgorithmCounters counters() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Arrival {
    Rank from;
    std::size_t bytes;
  };

  /// Returns once `ready` holds or the run has failed.
  Status wait_until(Lock& lock, const std::function<bool()>& ready);
  /// Makes next_ the exchange under way and has it carried.
  void start_exchange(Lock& lock);
  /// Carries the exchange under way and all that follow from it.
  void carry(Lock& lock);
  /// Posts current_ and waits for its end, without the lock; faults name node and round.
  Status exchange();
  Status post_and_wait();
  /// Feeds what arrived to the algorithm; sets under_way_ when it wants a further exchange.
  Status deliver();
  void count_sends();
  void serve();

  Algorithm& algorithm_;
  Transport& transport_;
  const DriverOptions options_;

  mutable std::mutex mutex_;  ///< guards everything below, and every call of the algorithm
  std::condition_variable wake_;
  std::condition_variable progress_;
  Exchange next_;
  Exchange current_;  ///< the carrier's alone while under_way_
  bool under_way_ = false;
  Status status_;
  std::vector<LinkTraffic> traffic_;
  DriverTimes times_;

  std::vector<Arrival> arrived_;  ///< the carrier's alone
  std::atomic<bool> stopping_{false};
  std::thread carrier_;
};

}  // namespace sotto
