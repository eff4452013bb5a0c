#include <sotto/study/train/epoch_plan.h>

#include <string>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/registry.h>
#include <sotto/trainers/settings/time_limit.h>

namespace sotto::study {
namespace {

constexpr double kShortestTimeout = 0.1;       // seconds
constexpr double kLongestTimeout = 24 * 3600;  // seconds

void refuse_local(const TrainOptions& o) {
  if (o.communication_interval != 1) {
    refuse("communication_interval", fmt::to_string(o.communication_interval),
           "where nodes of one model come and go each step is exchanged: leave it out, or take "
           "pushsum");
  }
}

std::string compressor_of(const TrainOptions& o) {
  const AlgorithmInfo& info = algorithm_info(o.algorithm);
  std::string compressor =
      o.compressor.empty() ? std::string(info.default_compressor) : o.compressor;
  const bool exact = compressor == "none";
  if (info.name == "allreduce" && !exact) {
    refuse("compressor", compressor, "allreduce sends whole gradients; qmean compresses them");
  }
  if (info.name == "qmean" && exact) {
    refuse("compressor", compressor,
           "qmean compresses; allreduce has the exact mean where nodes come and go");
  }
  return compressor;
}

}  // namespace

bool has_one_model(std::string_view algorithm) {
  const std::string_view name = algorithm.substr(0, algorithm.find(':'));
  return name == "allreduce" || name == "qmean";
}

EpochOptions make_epoch_options(const TrainOptions& o, const RosterSettings& roster, Round steps,
                                std::optional<double> timeout_s) {
  refuse_local(o);
  const AlgorithmSpec algorithm = algorithm_of(o);
  if (algorithm_info(o.algorithm).name == "qmean" && algorithm.hyperparameters.real("decay") != 1) {
    refuse("algorithm", o.algorithm, "where nodes come and go an error stays whole: decay is 1");
  }
  EpochOptions options{.listen = roster.listen, .roster = options_of(roster)};
  options.name = roster.name.empty() ? default_node_name() : roster.name;
  options.compressor = compressor_of(o);
  options.step_rule = step_rule_of(o, steps);
  options.seed = o.seed;
  options.rounds = steps;
  options.state = roster.state;
  if (timeout_s) {
    options.timeout = time_limit("timeout", *timeout_s, kLongestTimeout, kShortestTimeout);
  }
  return options;
}

}  // namespace sotto::study
