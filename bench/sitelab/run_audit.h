// What the sites of a run leave behind, once all have ended, and whether it is as it should be:
// their states, the mass in them, their models, their logs, and who was missed how soon.
//
// One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sotto/sites/faults/fault_plan.h>

#include "durable_site.h"
#include "real_fleet.h"
#include "real_injection.h"
#include "real_naming.h"
#include "real_sites.h"
#include "site_log.h"

namespace sotto::sitelab {

class RunAudit {
 public:
  /// Notes that a site, or −1 for all, did something wrong during something.
  using Fail = std::function<void(Rank site, std::string during, std::string what)>;

  /// The plan must outlive it. `unix_start`: when the run began, in seconds since 1970.
  RunAudit(const FaultPlan& plan, double unix_start, Fail fail);

  /// Looks at what all sites of the fleet have left, and completes the report, which says already
  /// whether every state is whole and how long a site may wait.
  void finish(const RealFleet& fleet, const RealInjection& injection, RealNaming& naming,
              RealReport& report) const;

 private:
  std::vector<DurableSite> read_states(const RealFleet& fleet, RealReport& report) const;
  void judge(const std::vector<DurableSite>& durable, RealReport& report) const;
  void weigh(const std::vector<DurableSite>& durable, const LostStates& lost,
             RealReport& report) const;
  /// By site.
  using Logs = std::vector<std::vector<LogEntry>>;
  Logs read_logs(const RealFleet& fleet, RealReport& report) const;
  static void name_liars(const RealFleet& fleet, const Logs& logs, RealNaming& naming,
                         RealReport& report);
  void measure(const MissedProcess& gone, const RealFleet& fleet, const Logs& logs,
               RealReport& report) const;

  const FaultPlan& plan_;
  double unix_start_;
  Fail fail_;
};

}  // namespace sotto::sitelab
