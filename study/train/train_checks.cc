#include <sotto/study/train/train_checks.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>

namespace sotto::study {
namespace {

constexpr Round kDefaultEpochs = 5;
constexpr Round kLeastRounds = 100;

void check_checkpoints(const TrainOptions& o) {
  if (o.checkpoint.empty() && o.resume) {
    throw Error("resume",
                "name the folder of the checkpoints to go on from, with " + mention("checkpoint"));
  }
  if (o.checkpoint.empty() && o.checkpoint_every) {
    refuse("checkpoint_every", fmt::to_string(*o.checkpoint_every),
           "nothing is saved without " + mention("checkpoint"));
  }
  std::error_code code;
  if (o.resume && !std::filesystem::exists(o.checkpoint, code)) {
    refuse(
        "checkpoint", o.checkpoint,
        "there is no such folder, so that there is nothing to go on from; start the run without " +
            mention("resume"));
  }
}

}  // namespace

Round count_rounds(const TrainOptions& o, Round per_epoch) {
  if (o.rounds) {
    if (*o.rounds == 0) {
      refuse("rounds", "0", "at least one is needed");
    }
    return *o.rounds;
  }
  if (!o.epochs) {
    return std::max(kLeastRounds, kDefaultEpochs * per_epoch);
  }
  const double epochs = *o.epochs;
  const double rounds = std::ceil(epochs * static_cast<double>(per_epoch));
  if (!(rounds >= 1 && rounds <= static_cast<double>(kMostCounted))) {
    refuse("epochs", fmt::to_string(epochs), "it must come to 1 … 10^15 rounds");
  }
  return static_cast<Round>(rounds);
}

void check_options(const TrainOptions& options) {
  check_checkpoints(options);
  check_settings(options);
}

}  // namespace sotto::study
