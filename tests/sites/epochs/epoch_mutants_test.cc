// Each rule on which safety or progress rests is needed: without it some schedule breaks a promise.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "sites/epochs/epoch_play.h"

using namespace sotto;
using namespace sotto::sites;
using namespace sotto::test;

namespace {

struct AnyGroup final : EpochRules {
  bool quorum(const std::set<EpochNode>& group,
              const std::vector<EpochNode>& /*members*/) const override {
    return !group.empty();
  }
};
struct BothHalves final : EpochRules {
  bool quorum(const std::set<EpochNode>& group,
              const std::vector<EpochNode>& members) const override {
    return 2 * group.size() >= members.size();
  }
};
struct NoFreeze final : EpochRules {
  bool acts_after_promise() const override { return true; }
};
struct MajorityHave final : EpochRules {
  bool commits(std::size_t having, std::size_t members) const override {
    return 2 * having > members;
  }
};
struct OneRound final : EpochRules {
  bool respects_accepted() const override { return false; }
};
struct CarryIfAllSayIt final : EpochRules {
  bool carries(std::size_t having, std::size_t /*at_top*/, std::size_t members) const override {
    return having == members;
  }
};
struct NewcomersBehind final : EpochRules {
  bool admits(Round ready, Round base, bool carries) const override {
    return ready + 1 >= base && !carries;
  }
  bool enters(Round /*step*/, Round /*base*/) const override { return true; }
};
struct KeptIsDropped final : EpochRules {
  bool applies_kept() const override { return false; }
};
struct HaveOnce final : EpochRules {
  bool answers_have() const override { return false; }
};

/// The first of `most` schedules that breaks a promise, and which; empty: none does.
std::string broken(const std::shared_ptr<const EpochRules>& rules, std::uint64_t most,
                   bool remember = true) {
  for (std::uint64_t seed = 0; seed < most; ++seed) {
    auto options = EpochPlay::options_for(seed, rules);
    options.founders_remember = remember;
    EpochPlay play(options);
    try {
      if (play.run() == EpochPlay::End::blocked) {
        return "seed " + std::to_string(seed) + ": blocked";
      }
    } catch (const Violated& violated) {
      return "seed " + std::to_string(seed) + ": " + violated.what();
    }
  }
  return {};
}

template <typename Rules>
void check_needed(const std::string& rule, std::uint64_t most) {
  const std::string how = broken(std::make_shared<Rules>(), most);
  CAPTURE(rule);
  CHECK(!how.empty());
  MESSAGE(rule, ": ", how);
}

}  // namespace

TEST_CASE("epochs: no rule can be left out") {
  check_needed<AnyGroup>("more than half decide", 50);
  check_needed<BothHalves>("of two halves one decides", 300);
  check_needed<NoFreeze>("who promises is frozen", 50);
  check_needed<MajorityHave>("all have the mean before one applies it", 300);
  check_needed<OneRound>("an accepted value is taken over", 400);
  check_needed<CarryIfAllSayIt>("a mean that nobody is known to lack is carried", 400);
  check_needed<NewcomersBehind>("newcomers are exactly as far as the run", 400);
  check_needed<KeptIsDropped>("the mean of the base is applied on entry", 400);
  check_needed<HaveOnce>("a have for an applied step is answered", 600);
}

TEST_CASE("epochs: founders that forget their votes may found two runs") {
  const std::string how = broken(std::make_shared<EpochRules>(), 600, false);
  CHECK(!how.empty());
  MESSAGE(how);
}
