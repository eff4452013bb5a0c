// A listed site that lies, as a process of its own: it keeps the protocol of sites and the wire's,
// and changes or holds back what it lets go as a simulated liar does (sites/faults/lies.h). It
// keeps no state, and has no monitor.
//
// One thread, beside those of its channels.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/faults/fault_plan.h>

namespace sotto::sitelab {

struct LiarOptions {
  Rank site = 0;  ///< one of those that lie in the plan
  std::uint64_t seed = 0;
  std::string folder;               ///< the site's, with its key and its list of peers
  int port = 0;                     ///< the port of loopback at which it listens
  std::function<bool()> stop = {};  ///< asked now and then: true ends it
};

/// The words that ask a `sitelab PLAN` to be that liar: all options but when to stop.
std::vector<std::string> liar_words(const LiarOptions& options);

/// Lies until it is told to stop. A fault: its sockets failed. Throws Error for a site that is
/// honest in the plan.
Status run_liar(const FaultPlan& plan, const LiarOptions& options);

}  // namespace sotto::sitelab
