// Whether honest sites tell their operators of a peer that lies, by name: in the log, in the status
// and in the metrics; and whether they accuse one that is honest.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/faults/fault_plan.h>

#include "site_log.h"
#include "site_status.h"

namespace sotto::sitelab {

/// How many of a liar's honest neighbours have named it, and where.
struct NamedLiar {
  Rank site = 0;
  LieKind kind = LieKind::takes;
  std::size_t neighbours = 0;
  std::size_t log = 0;
  std::size_t status = 0;
  std::size_t metrics = 0;
};

class RealNaming {
 public:
  /// The plan must outlive it.
  explicit RealNaming(const FaultPlan& plan) : plan_(plan) {}

  /// What the honest site `by` says at one time, or has said so far.
  void see_status(Rank by, const SiteStatus& status);
  void see_metrics(Rank by, const std::string& text);
  void see_log(Rank by, const std::vector<LogEntry>& log);

  /// By liar; `neighbours` are those of each site in the plan's graph.
  std::vector<NamedLiar> named(const std::vector<std::vector<Rank>>& neighbours) const;
  /// Events that blame an honest peer for what liars do.
  std::uint64_t honest_accused() const { return honest_accused_; }

 private:
  struct Seen {
    bool log = false;
    bool status = false;
    bool metrics = false;
  };

  const FaultPlan& plan_;
  std::map<std::pair<Rank, Rank>, Seen> seen_;  ///< by the site that says it, and the liar
  std::uint64_t honest_accused_ = 0;
};

}  // namespace sotto::sitelab
