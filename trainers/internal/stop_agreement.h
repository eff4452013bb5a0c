// After which round the nodes of a run end when they are told to stop, so that all save the same.
//
// A thread beside each node's own looks whether it shall stop. Once it shall, it lets the node
// begin no further round, and publishes how many it has begun; node 0 publishes the most of any.
// All go on to that round, so that nobody waits for a neighbour that has ended before it.
//
// Thread safety: begin() belongs to the node's thread. The store and the flag must outlive it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>

namespace sotto::internal {

class StopAgreement {
 public:
  /// In `patience` after this node all others must have been told.
  StopAgreement(Store& store, Rank rank, int nodes, const std::atomic<bool>& stop,
                std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~StopAgreement();
  StopAgreement(const StopAgreement&) = delete;
  StopAgreement& operator=(const StopAgreement&) = delete;

  enum class Verdict {
    go_on,
    end,       ///< all nodes end after the rounds that are done
    disagree,  ///< end at once: not all nodes were told to stop
  };
  /// Asked before each round, and may wait for the others.
  Verdict begin(Round done);

 private:
  void watch();
  /// The round at which all end, from what they publish.
  Result<Round> agree(Round begun);
  Result<Round> await(const std::string& key);

  Store& store_;
  const Rank rank_;
  const int nodes_;
  const std::atomic<bool>& stop_;
  const std::chrono::milliseconds patience_;
  std::atomic<bool> closing_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  Round begun_ = 0;
  bool frozen_ = false;  ///< no further round begins before the agreement
  std::optional<Round> last_;
  bool failed_ = false;
  std::thread watcher_;  ///< last: it uses all of the above
};

}  // namespace sotto::internal
