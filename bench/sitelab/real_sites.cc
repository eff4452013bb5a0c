#include "real_sites.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sites/faults/site_liveness.h>
#include <sotto/topology/registry.h>

#include "real_run.h"

namespace sotto::sitelab {
namespace {

constexpr int kMostProcesses = 32;

}  // namespace

void check_real(const FaultPlan& plan) {
  check_sites(plan);
  if (!plan.lies.empty() && plan.exchange == sites::MixingKind::secure_mean) {
    refuse("liar", plan.title, "real sites that sum in secret do not lie");
  }
  const bool turns = std::ranges::any_of(plan.lies, [](const PlannedLie& lie) {
    return lie.at > 0 || lie.lasting != kNever || lie.restarts;
  });
  if (turns || plan.random_lies.liars > 0) {
    refuse("liar", plan.title,
           "real sites lie from their beginning to their end, and are named by the plan");
  }
  if (plan.sites > kMostProcesses) {
    refuse("sites", fmt::to_string(plan.sites),
           fmt::format("each is a process with relays to its peers: {} at most", kMostProcesses));
  }
  if (plan.link.jitter != 0) {
    refuse("link.jitter", fmt::to_string(plan.link.jitter),
           "the relays between real sites have bandwidth and latency alone");
  }
  const auto graph = make_topology(plan.graph, plan.sites);
  for (Rank site = 0; site < plan.sites; ++site) {
    if (neighbours(*graph, site).empty()) {
      refuse("graph", plan.graph,
             fmt::format("site {} of {} has no neighbour in it, and a real site does not start "
                         "without peers; give every site an edge",
                         site, plan.sites));
    }
  }
  const auto check_kind = [](FaultKind kind, const char* where) {
    if (kind == FaultKind::clock) {
      refuse(where, fault_kind(kind).name,
             "real processes share one clock; give [random] kinds without it");
    }
  };
  for (const PlannedFault& fault : plan.faults) {
    check_kind(fault.kind, "kind");
    if (fault.link.jitter != 0) {
      refuse("link.jitter", fmt::to_string(fault.link.jitter),
             "the relays between real sites have bandwidth and latency alone");
    }
  }
  for (const FaultKind kind : plan.random ? plan.random->kinds : std::vector<FaultKind>()) {
    check_kind(kind, "kinds");
  }
}

RealReport run_real_sites(const FaultPlan& plan, const RealOptions& options) {
  check_real(plan);
  return RealRun(plan, options).run();
}

}  // namespace sotto::sitelab
