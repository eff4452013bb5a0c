#include <sotto/console/flag_spelling.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/study/train/train_plan.h>

#include "commands.h"

namespace sotto::test::flag_spelling_test {

using namespace sotto::study;

namespace {

/// `sotto` as it is when one of its commands was called.
struct Called {
  explicit Called(std::vector<std::string> words) {
    program.allow_extras();
    std::ranges::reverse(words);
    program.parse(std::move(words));
  }

  CLI::App program{"", "sotto"};
  std::vector<console::Command> commands = cli::add_all_commands(program);
  console::FlagSpelling flags{program};
};

/// What refuses a run of these settings, in flags; empty when it is taken.
std::string refusal(const TrainOptions& options) {
  const Called train({"train"});
  try {
    (void)make_train_plan(options);
  } catch (const Error& error) {
    return error.render(train.flags);
  }
  return {};
}

}  // namespace

TEST_CASE("settings are flags, and what is no setting stays as it is") {
  const Called train({"train"});
  const console::FlagSpelling& flags = train.flags;
  CHECK(flags.subject("weight_decay") == "--weight-decay");
  CHECK(flags.subject("lr") == "--lr");
  CHECK(flags.subject("start") == "--init");
  CHECK(flags.subject("gradient") == "gradient");
  CHECK(flags.subject("rank_by") == "rank_by");
  CHECK(flags.subject("mllog") == "--mllog");
  CHECK(flags.mention("weighting", "shares") == "--weighting shares");
  CHECK(flags.mention("lazy", "true") == "--lazy");
  CHECK(flags.mention("clip_norm", "") == "--clip-norm");
  CHECK(flags.mention("buffers", "2") == "buffers 2");
  const Called plan({"plan", "ocean.toml"});
  CHECK(plan.flags.subject("rank_by") == "--rank-by");
  CHECK(plan.flags.subject("scenario") == "SCENARIO");
  CHECK(plan.flags.subject("lr") == "lr");
  CHECK(Called({"compare"}).flags.subject("run") == "--run");
  CHECK(Called({"node", "site.toml"}).flags.subject("log_file") == "--log-file");
  CHECK(Called({"node", "site.toml"}).flags.subject("site") == "SITE.toml");
  CHECK(Called({"simulate", "s.toml"}).flags.subject("trace_from") == "--trace-from");
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

}  // namespace sotto::test::flag_spelling_test
