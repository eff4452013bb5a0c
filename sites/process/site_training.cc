#include <sotto/sites/process/site_training.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/optim/registry.h>

namespace sotto {
namespace {

using sites::MixingKind;

/// What an algorithm of `sotto train` is between sites.
struct Way {
  std::string_view name;  ///< of the algorithm
  MixingKind exchange;
  bool compresses;
};
constexpr auto kWays = std::to_array<Way>({{"pushsum", MixingKind::push_sum, true},
                                           {"choco", MixingKind::gossip, true},
                                           {"dpsgd", MixingKind::gossip, false},
                                           {"robust", MixingKind::gossip, false}});

const Way& way_of(std::string_view algorithm) {
  const auto* const way = std::ranges::find(kWays, algorithm, &Way::name);
  if (way == kWays.end()) {
    refuse("algorithm", algorithm,
           fmt::format("sites exchange by {}, along one-sided trust too, or by {}, where all trust "
                       "is mutual",
                       algorithms_of(MixingKind::push_sum), algorithms_of(MixingKind::gossip)));
  }
  return *way;
}

}  // namespace

std::string algorithms_of(MixingKind exchange) {
  return word_list(names_with(kWays, [&](const Way& way) { return way.exchange == exchange; }));
}

bool is_exchange(std::string_view algorithm) {
  return std::ranges::find(kWays, algorithm, &Way::name) != kWays.end();
}

void take_exchange(const OptimizerSettings& settings, bool secure_sum, SiteOptions& options) {
  const AlgorithmInfo& info = algorithm_info(settings.algorithm);
  const Way& way = way_of(info.name);
  options.exchange = way.exchange;
  options.compressor = settings.compressor;
  if (options.compressor.empty()) {
    options.compressor = info.default_compressor;
  }
  if (!way.compresses && options.compressor != "none") {
    refuse("compressor", options.compressor,
           fmt::format("{} sends whole models; {} compress", settings.algorithm,
                       word_list(names_with(kWays, &Way::compresses), "and")));
  }
  const AlgorithmSpec algorithm = algorithm_of(settings);
  options.rule = algorithm.hyperparameters.text("rule");
  options.consensus_stepsize = algorithm.hyperparameters.optional_real("eta");
  if (!secure_sum) {
    return;
  }
  if (info.name != "dpsgd") {
    refuse("secure_sum", "true",
           fmt::format("it is for dpsgd, whose models are averaged as they are, and not for {}",
                       settings.algorithm));
  }
  options.exchange = MixingKind::secure_mean;
}

void take_steps(const OptimizerSettings& settings, Round rounds, std::uint64_t seed,
                SiteOptions& options) {
  if (settings.communication_interval < 1) {
    refuse("communication_interval", fmt::to_string(settings.communication_interval),
           "it must be 1 or more steps");
  }
  options.communication_interval = settings.communication_interval;
  options.rounds = rounds;
  options.step_rule = step_rule_of(settings, rounds * settings.communication_interval);
  options.outer_step_rule = has_outer_rule(settings) ? outer_step_rule_of(settings) : std::nullopt;
  options.seed = seed;
  // What is refused is refused here, before a folder is made.
  (void)make_step_rule(options.step_rule);
  if (options.outer_step_rule) {
    (void)make_outer_step_rule(*options.outer_step_rule);
  }
}

void take_observer(SiteOptions& options) {
  if (options.exchange != MixingKind::push_sum) {
    refuse("observer", "true",
           "other exchanges need neighbours that send, too; it is for " +
               algorithms_of(MixingKind::push_sum));
  }
  options.only_takes = true;
}

}  // namespace sotto
