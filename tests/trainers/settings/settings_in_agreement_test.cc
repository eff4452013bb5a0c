// No setting that changes results can be different at two nodes without their noticing.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/settings/optimizer_settings.h>
#include <sotto/trainers/settings/privacy_settings.h>

#include "support/scratch.h"
#include "trainers/nodes.h"

namespace sotto::test::settings_in_agreement_test {

namespace {

constexpr int kNodes = 4;
using Given = std::vector<std::pair<std::string, std::string>>;

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

/// A setting with a value other than its default, and others without which it does nothing.
struct Change {
  std::string value;
  Given with = {};
};

const Given kPrivate = {{"clip-norm", "1"}, {"noise-multiplier", "1"}};

const std::map<std::string_view, Change> kChanges = {
    {"nodes", {"8"}},
    {"topology", {"complete"}},
    {"groups", {""}},  // a file that the test writes
    {"weighting", {"shares", {{"algorithm", "pushsum"}, {"topology", "star"}}}},
    {"lazy", {"true"}},
    {"join", {"zeros"}},
    {"algorithm", {"choco"}},
    {"compressor", {"quant:4"}},
    {"consensus-stepsize", {"0.25", {{"algorithm", "choco"}}}},
    {"extrapolation-clock", {"32", {{"algorithm", "ecd"}}}},
    {"freeze-step", {"7", {{"algorithm", "onebit-adam"}}}},
    {"local-step-limit", {"3", {{"algorithm", "zeroone-adam"}, {"freeze-step", "9"}}}},
    {"rule", {"median", {{"algorithm", "robust"}}}},
    {"attack", {"sign-flip", {{"algorithm", "robust"}}}},
    {"delayed-gradient", {"true", {{"algorithm", "choco"}}}},
    {"buckets", {"3"}},
    {"step-rule", {"adam"}},
    {"lr", {"0.03"}},
    {"momentum", {"0.5"}},
    {"quasi-global-momentum", {"0.5"}},
    {"nesterov", {"true", {{"momentum", "0.5"}}}},
    {"weight-decay", {"0.01"}},
    {"beta1", {"0.8", {{"step-rule", "adam"}}}},
    {"beta2", {"0.9", {{"step-rule", "adam"}}}},
    {"epsilon", {"1e-6", {{"step-rule", "adam"}}}},
    {"bias-correction", {"never", {{"step-rule", "adam"}}}},
    {"trust-coefficient", {"0.01", {{"step-rule", "lars"}}}},
    {"update-scale", {"spectral", {{"step-rule", "muon"}}}},
    {"clip-norm", {"2"}},
    {"schedule", {"cosine"}},
    {"communication-interval", {"4"}},
    {"outer-step-rule", {"adam", {{"communication-interval", "4"}}}},
    {"outer-lr", {"0.7", {{"communication-interval", "4"}}}},
    {"outer-momentum", {"0.5", {{"communication-interval", "4"}}}},
    {"outer-nesterov", {"true", {{"communication-interval", "4"}, {"outer-momentum", "0.5"}}}},
    {"outer-after-mixing", {"true", {{"communication-interval", "4"}, {"algorithm", "choco"}}}},
    {"fragments", {"2", {{"communication-interval", "4"}, {"algorithm", "allreduce"}}}},
    {"sync-delay", {"1", {{"communication-interval", "4"}, {"algorithm", "allreduce"}}}},
    {"sync-mix", {"carry", {{"communication-interval", "4"}, {"algorithm", "allreduce"}}}},
    {"noise-multiplier", {"2", kPrivate}},
    {"privacy-epsilon", {"5", kPrivate}},
    {"privacy-delta", {"1e-6", kPrivate}},
    {"privacy-unit", {"update", kPrivate}}};

std::string agreement_of(const Given& given, Round steps = 100) {
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
      const auto change = kChanges.find(name);
      // A new setting is added to one of the two lists above.
      REQUIRE((change != kChanges.end()) != kOwn.contains(name));
      if (change == kChanges.end()) {
        continue;
      }
      Given without = change->second.with;
      std::erase_if(without, [&](const auto& one) { return one.first == name; });
      Given with = without;
      const Scratch scratch;
      const bool file = change->second.value.empty();
      if (file) {
        std::ofstream(scratch.path() / "groups") << "0 1\n2 3\n";
      }
      with.emplace_back(name, file ? (scratch.path() / "groups").string() : change->second.value);
      if (name == "noise-multiplier") {
        without = kPrivate;
      }
      const std::string difference = first_difference(agreement_of(with), agreement_of(without));
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
  const auto refusal = [](const Given& given) -> std::string {
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
