#include <sotto/study/train/train_checks.h>

#include <filesystem>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto::study {
namespace {

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

void check_options(const TrainOptions& options) {
  check_checkpoints(options);
  check_settings(options);
}

}  // namespace sotto::study
