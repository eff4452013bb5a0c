// What sites must share: the same however it is written, and other for each setting that changes
// what they compute.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/process/site_options.h>

namespace sotto::test::site_options_test {

namespace {

std::string settings_with(const std::function<void(SiteOptions&)>& change) {
  const KeyPair keys = make_key_pair();
  SiteOptions options{.security = {keys, std::make_shared<AllowList>(std::vector<TrustedPeer>())}};
  change(options);
  return settings_text(shared_settings(options, {{"weight", {4, 3}}, {"bias", {3}}}));
}

}  // namespace

TEST_CASE("what sites share does not depend on how a compressor is written") {
  const auto compressor = [](const char* spec) {
    return settings_with([&](SiteOptions& o) { o.compressor = spec; });
  };
  CHECK(compressor("quant:8") == compressor("quant:8,chunk=2048"));
  CHECK(compressor("quant:8") != compressor("quant:8,chunk=1024"));
  CHECK(compressor("quant:8") != compressor("quant:4"));
}

TEST_CASE("each setting that changes what sites compute changes what they must share") {
  const std::vector<std::function<void(SiteOptions&)>> changes = {
      [](SiteOptions&) {},
      [](SiteOptions& o) { o.exchange = sites::MixingKind::gossip; },
      [](SiteOptions& o) { o.exchange = sites::MixingKind::secure_mean; },
      [](SiteOptions& o) {
        o.exchange = sites::MixingKind::secure_mean;
        o.sum.colluders = 2;
      },
      [](SiteOptions& o) {
        o.exchange = sites::MixingKind::secure_mean;
        o.sum.range = 8;
      },
      [](SiteOptions& o) { o.compressor = "sign"; },
      [](SiteOptions& o) { o.rule = "median"; },
      [](SiteOptions& o) { o.consensus_stepsize = 0.5; },
      [](SiteOptions& o) { o.step_rule.learning_rate *= 2; },
      [](SiteOptions& o) { o.own_step_rule = [] { return make_step_rule({}); }; },
      [](SiteOptions& o) { o.outer_step_rule = {.rule = "sgd", .learning_rate = 0.7}; },
      [](SiteOptions& o) {
        o.further = {{"rate", "0.1"}};
      },
      [](SiteOptions& o) { o.communication_interval = 2; },
      [](SiteOptions& o) { o.step_weighting = sites::StepWeighting::equal; },
      [](SiteOptions& o) { o.window = 3; },
      [](SiteOptions& o) { o.seed = 1; },
      [](SiteOptions& o) { o.mass.back = 0.5; },
      [](SiteOptions& o) { o.mass.parcel = 2; },
      [](SiteOptions& o) {
        o.init = model_digest(std::vector<float>{1, 2, 3});
      },
      [](SiteOptions& o) { o.data.columns = {"age"}; },
      [](SiteOptions& o) {
        o.data.classes = {"no", "yes"};
      },
      [](SiteOptions& o) { o.data.targets = {"days"}; },
  };
  std::set<std::string> texts;
  for (const auto& change : changes) {
    texts.insert(settings_with(change));
  }
  CHECK(texts.size() == changes.size());
}

}  // namespace sotto::test::site_options_test
