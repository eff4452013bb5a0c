#include <sotto/sites/elastic/elastic_options.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/compress/registry.h>
#include <sotto/trainers/settings/step_rule_settings.h>

namespace sotto {
namespace {

constexpr std::size_t kDigestShown = 16;  // characters
constexpr Round kGradientsUnsaved = 100;

/// The address of the node that begins the run. By a store any may, which nodes reach by URLs of
/// their own.
std::string first_seed_of(const ElasticOptions& options) {
  const std::vector<std::string>& seeds = options.roster.seeds;
  return by_store(options.roster) ? "by a store" : seeds.empty() ? options.listen : seeds.front();
}

}  // namespace

StepRuleOptions run_step_rule(const ElasticOptions& options) {
  const StepRuleOptions as_it_is{.rule = "sgd", .learning_rate = 1};
  return has_local_steps(options) ? options.outer_step_rule.value_or(as_it_is) : options.step_rule;
}

Round save_every_of(const ElasticOptions& options) {
  const Round interval = std::max<Round>(options.communication_interval, 1);
  return options.save_every.value_or((kGradientsUnsaved + interval - 1) / interval);
}

AgreedSettings agreed_settings(const ElasticOptions& options, const ParameterLayout& layout) {
  const std::string shapes = layout_text(layout);
  const auto compressor = make_compressor(options.compressor, ContractKind::contraction);
  AgreedSettings settings = {
      {"parameters", fmt::to_string(dimension_of(layout))},
      {"layout", sha256_hex(std::as_bytes(std::span(shapes))).substr(0, kDigestShown)},
      {"exchange", "epochs"},
      {"compressor", compressor->spec()},
      {"seed", fmt::to_string(options.seed)},
      // One node begins the run: all must mean the same.
      {"first-seed", first_seed_of(options)},
      {"grace", options.grace ? fmt::format("{} ms", options.grace->count()) : "none"},
  };
  if (options.begin_again_after) {
    settings.emplace_back("begin-again-after",
                          fmt::format("{} ms", options.begin_again_after->count()));
  }
  const AgreedSettings steps = options.own_step_rule ? AgreedSettings{{"step-rule", "own"}}
                                                     : step_rule_settings(options.step_rule);
  settings.insert(settings.end(), steps.begin(), steps.end());
  if (has_local_steps(options)) {
    settings.emplace_back("communication-interval", fmt::to_string(options.communication_interval));
    add_outer_settings(run_step_rule(options), settings);
  }
  settings.insert(settings.end(), options.further.begin(), options.further.end());
  return settings;
}

}  // namespace sotto
