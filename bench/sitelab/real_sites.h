// A plan of faults (sites/faults/fault_plan.h) on real sites: processes of `sotto node` on this
// machine, each with a key and a folder of its own, that reach each other through relays on
// loopback.
//
// What is looked at is seen from outside: their monitors while they run; their states, results and
// logs, and what they take of the machine. A site that does not get on in time is a violation, and
// so is all that the end shows to be wrong.
//
// One run an object, in one thread, which holds no other threads yet when the object is made: it
// forks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/simulated/simulated_sites.h>

#include "bench/support/quantile.h"
#include "durable_site.h"
#include "growth.h"
#include "real_naming.h"

namespace sotto::sitelab {

/// Throws Error, naming it, for what cannot be done to real processes.
void check_real(const FaultPlan& plan);

struct RealProgress {
  double run_s = 0;
  std::uint64_t faults = 0;  ///< the faults that had an effect
  int running = 0;           ///< sites
  Round least = 0;           ///< rounds of those that run
  Round most = 0;
};

struct RealOptions {
  std::string program;  ///< the sotto that runs the sites
  /// The words that run a site that lies, before those that say which (real_liar.h).
  std::vector<std::string> liar = {};
  std::uint64_t seed = 0;
  std::string folder;  ///< an empty folder, which gets the sites' files
  std::function<void(const RealProgress&)> progress = {};
  std::function<bool()> stop = {};  ///< asked now and then: true ends the run early
};

/// What a site has come to.
struct SiteOutcome {
  Round round = 0;
  double accuracy = 0;  ///< of its model, on the test set: 0 … 1
};

/// How long it took until somebody was missed; seconds, sorted.
struct Detections {
  std::vector<double> seconds;
  std::uint64_t missed = 0;  ///< nobody noticed in time
  double median() const { return seconds.empty() ? 0 : bench::median(seconds); }
  double longest() const { return seconds.empty() ? 0 : seconds.back(); }
};

struct RealReport {
  std::uint64_t seed = 0;
  std::optional<SimulatedSiteViolation> violation;
  std::array<std::uint64_t, kFaultKindCount> injected =
      {};  ///< the faults that had an effect, by kind
  double run_s = 0;
  double pauses_s = 0;       ///< seconds in which this process itself got no processor
  std::uint64_t starts = 0;  ///< how often a process was started
  Round rounds_least = 0;    ///< the fewest of all honest sites that have a state
  Round rounds_most = 0;
  std::uint64_t resets = 0;
  double bound_s = 0;  ///< the longest that a site may wait
  double worst_recovery_s =
      0;                     ///< the longest from a disturbance until two neighbours were in touch
  double worst_leave_s = 0;  ///< the longest from SIGTERM to the end of a process
  Detections killed;         ///< how neighbours in touch noticed
  Detections stopped;        ///< … that stood still for longer than the silence time-out
  std::uint64_t offences = 0;
  /// By site; nothing for one that lies, and for one without a state.
  std::vector<std::optional<SiteOutcome>> outcomes;
  std::vector<NamedLiar> named;
  std::uint64_t honest_accused = 0;  ///< events that blame an honest site for what liars do
  MassAudit mass;
  bool whole = true;  ///< no fault that loses states happened
  std::size_t largest_state = 0;
  Growth growth;
};

/// Runs the plan, until its end or the first violation. Throws Error for a plan that is refused.
RealReport run_real_sites(const FaultPlan& plan, const RealOptions& options);

}  // namespace sotto::sitelab
