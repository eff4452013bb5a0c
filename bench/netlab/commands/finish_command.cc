// `netlab finish`: how long training takes until it is as good as is asked for, of sotto and of
// others, on one network in one run.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>
#include <sotto/study/json/figures.h>
#include <sotto/study/units.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/contest/contest.h"
#include "commands.h"

namespace sotto::netlab {
namespace {

constexpr const char* kFinishExamples =
    "Examples:\n"
    "  netlab finish --mnist \"$SOTTO_DATA/mnist\" --json finish.json\n"
    "  netlab finish --mnist \"$SOTTO_DATA/mnist\" --accuracy 0.9 --only sotto --only ddp\n"
    "  netlab finish --task \"text:$SOTTO_DATA/shakespeare/input.txt,context=32\" "
    "--model transformer --step-rule adamw --lr 0.003 --accuracy 0.35\n"
    "All train the same model from the same kind of start on the same examples, dealt out evenly, "
    "with the same batch and learning rate. The clock stands still during evaluations. What cannot "
    "run or fails is a row that says why; where all do, the exit status is 1.";

const std::vector<Baseline> kAllreduce = {Baseline::gloo, Baseline::others, Baseline::own};
const std::vector<Baseline> kHooks = {Baseline::ddp_hook};

struct FinishRequest {
  ContestRequest contest;
  TrainingSettings training;
  double accuracy = 0.93;
  int hidden = 64;
  int rounds = 250;
};

/// What a contender's last run was like.
using Finishes = std::map<std::string_view, TimeToAccuracy>;

JobRequest job_of(const FinishRequest& request) {
  return {.hidden = request.hidden,
          .rounds = request.rounds,
          .seed = request.contest.options.common.seed,
          .training = request.training};
}

void show(const std::vector<ContenderResult>& results, const Finishes& finishes,
          const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(results.size());
  for (const ContenderResult& one : results) {
    const bench::MedianSpread spread = one.spread();
    const auto found = finishes.find(one.contender.name);
    const bool ran = found != finishes.end();
    const bool reached = ran && found->second.round.has_value();
    rows.push_back({std::string(one.contender.name),
                    std::isfinite(spread.median) ? study::duration_text(spread.median) : "–",
                    spread_text(spread), reached ? fmt::to_string(*found->second.round) : "–",
                    ran ? study::percent(found->second.best) : "–",
                    ran ? study::duration_text(found->second.round_s) : "–",
                    ratio_text(speedups(one, results, kAllreduce)),
                    ratio_text(speedups(one, results, kHooks)), one.failure()});
  }
  output.table({"contender", "time", "range", "rounds", "best accuracy", "a round",
                "all-reduce's best", "PyTorch hooks' best", ""},
               rows);
}

Json json_of(const std::vector<ContenderResult>& results, const Finishes& finishes) {
  Json all = Json::array();
  for (const ContenderResult& one : results) {
    const auto found = finishes.find(one.contender.name);
    const bool ran = found != finishes.end();
    const auto ratio = [&](const std::vector<Baseline>& baselines) {
      return bench::spread_json(bench::spread_of(speedups(one, results, baselines)));
    };
    all.push_back({{"name", one.contender.name},
                   {"time_s", bench::spread_json(one.spread())},
                   {"rounds", ran ? study::or_null(found->second.round) : Json()},
                   {"best_accuracy", ran ? Json(found->second.best) : Json()},
                   {"round_s", ran ? Json(found->second.round_s) : Json()},
                   {"ratio_to_allreduce", ratio(kAllreduce)},
                   {"ratio_to_hooks", ratio(kHooks)},
                   {"failure", one.failure().empty() ? Json() : Json(one.failure())}});
  }
  return all;
}

/// Parameters of what is trained. Throws Error for a task or a model that is none, and for a task
/// without classes to tell apart.
std::size_t dimension_of(const FinishRequest& request) {
  const TrainingSettings& training = request.training;
  if (training.task.empty() && training.model.empty()) {
    return elements_of(request.hidden);
  }
  const auto data = load_task(training.task_spec());
  if (data->dataset == nullptr || data->regression()) {
    refuse("--task", training.task_spec(),
           "nothing in it is right or wrong, so that no accuracy can be reached");
  }
  const TaskFactory tasks(data, {.model = training.model_spec(request.hidden),
                                 .batch = static_cast<std::size_t>(training.batch),
                                 .nodes = request.contest.testbed.hosts,
                                 .seed = request.contest.options.common.seed});
  return tasks.make(0)->dimension();
}

/// Refuses what nobody could train with, before anybody does.
void check_training(const FinishRequest& request) {
  if (request.training.mnist.empty() && request.training.task.empty()) {
    throw Error("give --mnist, a folder of MNIST's IDX files, or --task and --model");
  }
  for (const auto& [name, value] :
       {std::pair{"--rounds", request.rounds}, std::pair{"--hidden", request.hidden},
        std::pair{"--batch", request.training.batch}}) {
    if (value < 1) {
      refuse(name, fmt::to_string(value), "at least one is needed");
    }
  }
  if (request.training.eval_every < 1) {
    refuse("--eval-every", "0", "at least one is needed");
  }
  if (request.training.mnist.empty()) {
    return;
  }
  try {
    (void)load_mnist(request.training.mnist);
  } catch (const Error& error) {
    throw Error(fmt::format("--mnist: {}", error.what()));
  }
}

/// Has those not run whose programs cannot train so.
void skip_untrained(std::vector<ContenderResult>& results, const TrainingSettings& training) {
  for (ContenderResult& one : results) {
    if (auto why = training.unknown_to(one.contender.runner)) {
      one.participation = Participation::skipped;
      one.why = std::move(*why);
    }
  }
}

int run(const FinishRequest& request) {
  const console::Output output(request.contest.options.common);
  console::catch_stop_signals();
  check_training(request);
  const std::size_t dimension = dimension_of(request);
  const Contest contest(request.contest, choose(training_contenders(), request.contest.only));
  const Json links = contest.links();
  output.line(contest.testbed().text());
  std::vector<ContenderResult> results = contest.blank_results();
  skip_untrained(results, request.training);
  Finishes finishes;
  const auto ask = [&](const Contender& /*all alike*/) { return job_of(request); };
  const auto take = [&](ContenderResult& one, const JobEnd& end) -> Result<std::optional<double>> {
    const auto finish = time_to_accuracy_from(end.output, request.accuracy);
    if (!finish.ok()) {
      return finish.status();
    }
    finishes[one.contender.name] = *finish;
    return finish->seconds;
  };
  for (std::uint64_t repeat = 1; repeat <= request.contest.repeats; ++repeat) {
    contest.repetition(results, ask, take,
                       fmt::format("repeat {}/{}", repeat, request.contest.repeats));
  }
  if (console::stop_requested()) {
    return console::kFailed;
  }
  output.line(fmt::format("\nuntil {} of the test examples are right, {} parameters",
                          study::percent(request.accuracy), dimension));
  show(results, finishes, output);
  output.json({{"sotto", SOTTO_VERSION},
               {"network", contest.testbed().json()},
               {"links", links},
               {"accuracy", request.accuracy},
               {"task", request.training.task_spec()},
               {"model", request.training.model_spec(request.hidden)},
               {"dimension", dimension},
               {"batch", request.training.batch},
               {"lr", request.training.lr},
               {"step_rule", request.training.step_rule},
               {"repeats", request.contest.repeats},
               {"contenders", json_of(results, finishes)}});
  const std::string fault = failure_of_all(results);
  return fault.empty() ? console::kDone : failed(fault);
}

}  // namespace

console::Command add_finish_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<FinishRequest>();
  request->contest.options.program = program;
  CLI::App* command = netlab.add_subcommand(
      "finish", "The time until a model is good enough, beside Gloo's collectives and PyTorch");
  console::OptionGroup group(*command, "What is trained");
  CLI::Option& mnist =
      group.option("--mnist", request->training.mnist, "DIR", "A folder of MNIST's IDX files");
  group
      .option("--task", request->training.task, "TASK",
              "Another task, as of sotto train: text:FILE,context=32")
      .excludes(&mnist);
  group.option("--accuracy", request->accuracy, "FRACTION", "Of the test examples, to be reached");
  CLI::Option& hidden =
      group.count("--hidden", request->hidden, "N", "Hidden units of the perceptron");
  group
      .option("--model", request->training.model, "MODEL",
              "Another model, as of sotto train; PyTorch's program knows mlp:N and transformers")
      .excludes(&hidden);
  group.count("--batch", request->training.batch, "N", "Examples a round and node");
  group.option("--lr", request->training.lr, "GAMMA", "Learning rate");
  group
      .option("--step-rule", request->training.step_rule, "RULE",
              "Step rule of all; Gloo's program knows sgd alone")
      .check(CLI::IsMember({"sgd", "adamw"}));
  group.count("--rounds", request->rounds, "N", "Rounds of every contender");
  group.count("--eval-every", request->training.eval_every, "N", "Rounds between evaluations");
  add_contest_options(*command, request->contest, "'sotto', 'gloo ring', 'ddp', …");
  command->footer(kFinishExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::netlab
