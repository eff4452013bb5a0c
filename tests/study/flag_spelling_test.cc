#include <sotto/study/flag_spelling.h>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/study/train_plan.h>

using namespace sotto;
using namespace sotto::study;

namespace {

/// What refuses a run of these settings, in flags; empty when it is taken.
std::string refusal(const TrainOptions& options) {
  try {
    (void)make_train_plan(options);
  } catch (const Error& error) {
    return in_flags(error);
  }
  return {};
}

}  // namespace

TEST_CASE("settings are flags, and what is no setting stays as it is") {
  const FlagSpelling flags;
  CHECK(flags.subject("weight_decay") == "--weight-decay");
  CHECK(flags.subject("lr") == "--lr");
  CHECK(flags.subject("start") == "--init");
  CHECK(flags.subject("rank_by") == "--rank-by");
  CHECK(flags.subject("scenario") == "SCENARIO");
  CHECK(flags.subject("gradient") == "gradient");
  CHECK(flags.subject("run") == "--run");
  CHECK(flags.mention("weighting", "shares") == "--weighting shares");
  CHECK(flags.mention("lazy", "true") == "--lazy");
  CHECK(flags.mention("clip_norm", "") == "--clip-norm");
  CHECK(flags.mention("buffers", "2") == "buffers 2");
}

TEST_CASE("what the library refuses is said in flags") {
  TrainOptions options;
  options.nodes = 4;
  options.local = true;
  options.rounds = 2;
  options.algorithm = "dcd";
  options.compressor = "topk:0.1";
  const std::string contract = refusal(options);
  CAPTURE(contract);
  CHECK(contract.starts_with("--compressor: 'topk:0.1' is refused: "));
  CHECK(contract.ends_with("or allow it explicitly with --allow-contract-violation"));

  options.algorithm = "pushsum";
  options.compressor.clear();
  options.topology = "ring";
  options.outer_step_rule = "sgd";
  options.outer_momentum = 2;
  CHECK(refusal(options).starts_with("--outer-momentum: '2' is refused: "));

  options.outer_lr = -1;
  CHECK(refusal(options).starts_with("--outer-lr: '-1' is refused: "));

  options = {};
  options.noise_multiplier = 1;
  CHECK(refusal(options) ==
        "--noise-multiplier: noise hides only what is bounded: give --clip-norm too, e.g. 1");
}
