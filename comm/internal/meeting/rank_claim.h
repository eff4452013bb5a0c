// A RankClaim is a record in a store of the process that is node RANK. A second process that takes
// itself for that node learns from it that there is one already.
//
// A record names a process, its host and what tells it from all others. On one machine the system
// says whether that process lives, and within one process the claim itself does; for a process
// elsewhere, or one that the system hides, its beat does, which it renews as long as it waits. A
// record whose process is gone is nobody's: a crashed node starts again, and the next run takes its
// store over.
//
// Thread safety: one thread at a time. The store must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>

namespace sotto::internal {

class RankClaim {
 public:
  RankClaim(Store& store, Rank rank);
  ~RankClaim();
  RankClaim(const RankClaim&) = delete;
  RankClaim& operator=(const RankClaim&) = delete;

  /// Makes this process the node. Fault::unexpected names the one that is it already, and then the
  /// record stays that one's. Watches a record from elsewhere for a beat, until `deadline` at most.
  Status take(const Deadline& deadline);
  bool taken() const { return taken_; }
  /// Call it in a wait: renews the beat when it is time. Fault::unexpected when another process
  /// came at the same moment, and is the node: the claim is not taken any more.
  Status hold();
  /// The process that the record named before, where nobody can say whether it lives: a process
  /// elsewhere, or one that the system hides, that shows no beat. Empty: nobody.
  const std::string& silent_predecessor() const { return silent_; }

 private:
  struct Record;
  std::string key() const;
  Result<std::optional<Record>> read() const;
  Status write();
  Status refusal(const Record& holder) const;
  /// Whether the process of `record` lives.
  Result<bool> lives(const Record& record, const Deadline& deadline);

  Store& store_;
  const Rank rank_;
  const std::uint64_t token_;  ///< number of this claim alone
  std::uint64_t beat_ = 0;
  bool taken_ = false;
  std::string silent_;
  Deadline::Clock::time_point next_beat_{};
};

}  // namespace sotto::internal
