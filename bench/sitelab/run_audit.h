// What the sites of a run leave behind, once all have ended, and whether it is as it should be:
// their states, the mass in them, their models, their logs, and who was missed how soon.
//
// One thread. One run an object.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/sites/faults/fault_plan.h>

#include "durable_site.h"
#include "real_fleet.h"
#include "real_naming.h"
#include "real_sites.h"
#include "site_log.h"

namespace sotto::sitelab {

/// A process that neighbours in touch with it are to miss.
struct MissedProcess {
  Rank site = 0;
  SimTime at = 0;
  bool stopped = false;  ///< it stands still; else it was killed
  std::vector<Rank> witnesses;
};

class RunAudit {
 public:
  /// Notes that a site, or −1 for all, did something wrong during something.
  using Fail = std::function<void(Rank site, std::string during, std::string what)>;

  /// The plan must outlive it. `unix_start`: when the run began, in seconds since 1970.
  RunAudit(const FaultPlan& plan, double unix_start, Fail fail);

  /// A fault has put one state of a site in place of another one, or removed it.
  void state_changed(const Result<std::optional<DurableSite>>& before,
                     const Result<std::optional<DurableSite>>& after);
  void expect_missed(MissedProcess gone) { gone_.push_back(std::move(gone)); }

  /// Looks at what all sites of the fleet have left, and completes the report, which says already
  /// whether every state is whole and how long a site may wait.
  void finish(const RealFleet& fleet, RealNaming& naming, RealReport& report);

 private:
  std::vector<DurableSite> read_states(const RealFleet& fleet, RealReport& report);
  void judge(const std::vector<DurableSite>& durable, RealReport& report) const;
  void weigh(const std::vector<DurableSite>& durable, RealReport& report);
  void read_logs(const RealFleet& fleet, RealNaming& naming, RealReport& report);
  void measure(const MissedProcess& gone, const RealFleet& fleet,
               const std::vector<std::vector<LogEntry>>& logs, RealReport& report) const;

  const FaultPlan& plan_;
  double unix_start_;
  Fail fail_;
  std::vector<MissedProcess> gone_;
  double returned_before_ = 0;  ///< what states that are gone had given back
  double minted_before_ = 0;    ///< what they had minted
};

}  // namespace sotto::sitelab
