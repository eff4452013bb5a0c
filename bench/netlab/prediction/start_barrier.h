// When the nodes of a job that just started take their first step. It looks into the store through
// which they meet, from a thread of its own.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "bench/netlab/network/emulated_network.h"

namespace sotto::netlab {

/// Watches for the moment at which all nodes begin.
class StartBarrier {
 public:
  using Clock = std::chrono::steady_clock;

  /// Listens at `store`, "host:port" of node 0 in the net past all links, from host 0.
  StartBarrier(const EmulatedNetwork& network, std::string host, int port);
  ~StartBarrier();
  StartBarrier(const StartBarrier&) = delete;
  StartBarrier& operator=(const StartBarrier&) = delete;

  /// When node 0 let all begin; nothing while it has not.
  std::optional<Clock::time_point> passed() const;

 private:
  void listen(const std::string& host, int port);

  const EmulatedNetwork& network_;
  std::atomic<bool> stopping_{false};
  std::atomic<Clock::rep> passed_{0};
  std::thread thread_;
};

}  // namespace sotto::netlab
