#include <sotto/study/train/epoch_plan.h>

#include <sotto/sites/live/epoch_settings.h>
#include <sotto/study/train/train_checks.h>

namespace sotto::study {

EpochOptions make_epoch_options(const TrainOptions& options, const RosterSettings& roster,
                                Round steps, std::optional<double> timeout_s) {
  EpochSettings settings{.roster = roster, .training = options};
  settings.seed = options.seed;
  settings.rounds = exchanges_in(steps, options);
  settings.timeout_s = timeout_s.value_or(settings.timeout_s);
  return options_of(settings);
}

}  // namespace sotto::study
