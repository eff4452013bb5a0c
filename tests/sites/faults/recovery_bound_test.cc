// How long sites may take to recover, for plans whose times come near the end of virtual time.
#include <limits>

#include <doctest/doctest.h>

#include <sotto/sim/time.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/faults/site_liveness.h>

namespace sotto::test::recovery_bound_test {

TEST_CASE("what a plan of faults gives sites to recover does not wrap") {
  FaultPlan plan;
  plan.link.latency = kNever / 4;
  CHECK(recovery_bound(plan, 1000) == kNever);
  plan = {};
  plan.link.bytes_per_s = 1e-300;
  CHECK(recovery_bound(plan, 1000) == kNever);
  plan = {};
  plan.interval = std::numeric_limits<Round>::max();
  CHECK(recovery_bound(plan, 1000) == kNever);
  plan = {};
  plan.silence = plan.patience = kNever / 2;
  CHECK(recovery_bound(plan, 1000) == kNever);
}

}  // namespace sotto::test::recovery_bound_test
