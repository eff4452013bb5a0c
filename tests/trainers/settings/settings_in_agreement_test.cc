// No setting that changes results can be different at two nodes without their noticing.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/settings/optimizer_settings.h>
#include <sotto/trainers/settings/privacy_settings.h>

#include "trainers/nodes.h"
#include "trainers/settings/setting_changes.h"

namespace sotto::test::settings_in_agreement_test {

namespace {

constexpr int kNodes = 4;

/// Settings that each node may have for itself: where and how it talks, and what it hides.
const std::set<std::string_view> kOwn = {"transport",
                                         "timeout",
                                         "rendezvous",
                                         "bind",
                                         "insecure",
                                         "streams",
                                         "key",
                                         "peers",
                                         "overlap",
                                         "weight",
                                         "allow-contract-violation",
                                         "byzantine",
                                         "codec-threads",
                                         "privacy-seed"};

std::string agreement_of(const GivenSettings& given, Round steps = 100) {
  OptimizerSettings settings;
  for (const auto& [name, value] : given) {
    REQUIRE(set(settings_of(settings), name, value));
  }
  check_settings(settings);
  OptimizerOptions options = options_of(settings, steps);
  options.transport = "inproc";
  options.store = make_memory_store();
  options.nodes = settings.nodes.value_or(kNodes);
  if (!settings.attack.empty()) {
    options.test.byzantine = {1};
  }
  // A whole update is not sampled.
  const bool sampled = settings.privacy_unit != privacy_unit_name(PrivacyUnit::update);
  options.privacy = privacy_of(
      settings, sampled ? PoissonSample{.rate = 0.1, .batch = 8} : PoissonSample{}, steps);
  std::vector<float> x(64, 1);
  ParameterLayout layout;
  append_block(layout, "x", {8, 8});  // a matrix, for rules that need one
  return Optimizer(options, x, layout).agreement();
}

}  // namespace

TEST_CASE("every setting that changes results changes what nodes agree on") {
  OptimizerSettings all;
  for (const SettingGroup& group : settings_of(all)) {
    for (const Setting& setting : group.settings) {
      const std::string name(setting.name);
      CAPTURE(name);
      const auto change = kSettingChanges.find(name);
      // A new setting is added to one of the two lists above.
      REQUIRE((change != kSettingChanges.end()) != kOwn.contains(name));
      if (change == kSettingChanges.end()) {
        continue;
      }
      GivenSettings with = change->second.with;
      with.emplace_back(name, change->second.value);
      const std::string difference =
          first_difference(agreement_of(with), agreement_of(change->second.with));
      CAPTURE(difference);
      CHECK_FALSE(difference.empty());
    }
  }
}

TEST_CASE("every hyperparameter of every algorithm is part of what nodes agree on") {
  for (const AlgorithmInfo& info : algorithms()) {
    AlgorithmSpec base = parse_algorithm(info.name);
    if (info.has("freeze")) {
      base.hyperparameters.set("freeze", "9");
    }
    for (const Hyperparameter& one : info.hyperparameters) {
      CAPTURE(std::string(info.name));
      CAPTURE(std::string(one.key));
      AlgorithmSpec changed = base;
      changed.hyperparameters.replace(one.key, !one.choices.empty() ? one.choices.back()
                                               : one.kind == HyperparameterKind::text ? "median"
                                               : one.kind == HyperparameterKind::real ? "0.125"
                                               : one.kind == HyperparameterKind::compressor
                                                   ? "topk:0.5"
                                                   : "5");
      const std::string difference =
          first_difference(agreement_of({{"algorithm", base.text()}}),
                           agreement_of({{"algorithm", changed.text()}}));
      CHECK(difference.starts_with("algorithm is "));
    }
  }
}

TEST_CASE("a cosine of another length is another schedule") {
  CHECK(first_difference(agreement_of({{"schedule", "cosine"}}, 100),
                         agreement_of({{"schedule", "cosine"}}, 200)) ==
        "schedule is cosine:0 of 100 steps here and cosine:0 of 200 steps there");
  CHECK(agreement_of({}, 100) == agreement_of({}, 200));
}

TEST_CASE("the older settings say the same as a specification, and no more than once") {
  const auto refusal = [](const GivenSettings& given) -> std::string {
    try {
      agreement_of(given);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  CHECK(agreement_of({{"algorithm", "choco"}, {"consensus_stepsize", "0.50"}}) ==
        agreement_of({{"algorithm", "choco:eta=0.5"}}));
  CHECK(agreement_of(
            {{"algorithm", "zeroone-adam"}, {"freeze-step", "9"}, {"local-step-limit", "3"}}) ==
        agreement_of({{"algorithm", "zeroone-adam:limit=3,freeze=9"}}));
  CHECK(agreement_of({{"algorithm", "onebit-adam"}, {"freeze-step", "auto"}}) ==
        agreement_of({{"algorithm", "onebit-adam"}}));
  CHECK(agreement_of({{"algorithm", "dcd"}, {"freeze-step", "auto"}}) == agreement_of({}));
  CHECK(agreement_of({{"algorithm", "robust"}, {"rule", "clipped:auto"}}) ==
        agreement_of({{"algorithm", "robust"}}));
  CHECK(refusal({{"algorithm", "ecd:clock=3"}, {"extrapolation-clock", "4"}}) ==
        "extrapolation_clock: '4' is refused: it is given twice: clock is 3 already");
  CHECK(refusal({{"algorithm", "dcd"}, {"extrapolation-clock", "32"}}) ==
        "extrapolation_clock: '32' is refused: dcd has none; leave it out, it is for ecd");
  CHECK(refusal({{"algorithm", "ecd"}, {"extrapolation-clock", "0"}}) ==
        "extrapolation_clock: '0' is refused: it must be a whole number from 1 to 4096: float32 "
        "follows no further");
  CHECK(refusal({{"algorithm", "pushsum"}, {"rule", "median"}}) ==
        "rule: 'median' is refused: pushsum has none, as on directed graphs none is proven against "
        "Byzantine nodes; leave it out, it is for robust");
}

}  // namespace sotto::test::settings_in_agreement_test
