#include <sotto/study/train/epoch_plan.h>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sites/live/epoch_settings.h>

namespace sotto::study {

EpochOptions make_epoch_options(const TrainOptions& options, const RosterSettings& roster,
                                Round steps, std::optional<double> timeout_s) {
  if (options.communication_interval != 1) {
    refuse("communication_interval", fmt::to_string(options.communication_interval),
           "where nodes of one model come and go each step is exchanged: leave it out, or take "
           "pushsum");
  }
  EpochSettings settings{.roster = roster, .training = options};
  settings.seed = options.seed;
  settings.rounds = steps;
  settings.timeout_s = timeout_s.value_or(settings.timeout_s);
  return options_of(settings);
}

}  // namespace sotto::study
