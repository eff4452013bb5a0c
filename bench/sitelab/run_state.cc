#include "run_state.h"

#include <cstddef>
#include <utility>

#include <sotto/base/unix_time.h>

namespace sotto::sitelab {
namespace {

/// What real processes get on top of the simulator's bound: to start, to be asked, and where others
/// use the machine.
constexpr SimTime kSlack = 10'000'000'000;
/// The longest message of the task that sites train.
constexpr std::size_t kMessageBytes = 4 * 7850 + 256;

}  // namespace

RunState::RunState(const FaultPlan& of_plan, const RealOptions& with)
    : plan(of_plan),
      options(with),
      fleet(plan, options),
      states(plan.sites),
      liveness(plan, plus(recovery_bound(plan, kMessageBytes), kSlack)),
      start(std::chrono::steady_clock::now()),
      audit(plan, unix_time(),
            [this](Rank site, std::string during, std::string what) {
              fail(site, std::move(during), std::move(what));
            }),
      naming(plan) {
  report.seed = options.seed;
  report.bound_s = to_seconds(liveness.bound());
}

SimTime RunState::now() const {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

void RunState::fail(Rank site, std::string during, std::string what) {
  if (!report.violation) {
    report.violation = {
        .time = now(), .site = site, .during = std::move(during), .what = std::move(what)};
  }
}

void RunState::disturb(Rank site) {
  liveness.disturb(site, now());
  fleet.at(site).disturbed.push_back(now());
}

void RunState::begin_process(Rank site) {
  if (!fleet.at(site).process) {
    fleet.begin(site, now());
    disturb(site);
  }
}

}  // namespace sotto::sitelab
