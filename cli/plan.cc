// `sotto plan`: which algorithm, how many bits and which graph are there first on a network.
//
// All candidates are screened by the α–β model (plan_model.h). Those of most promise are simulated:
// for a quarter of the rounds, and the best of them to the end, beside full-precision all-reduce
// and uncompressed gossip. The same scenario gives the same answer, but for measured codec speeds.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "commands.h"
#include "compare_equal.h"
#include "compare_report.h"
#include "option_group.h"
#include "output.h"
#include "plan_candidates.h"
#include "plan_verdict.h"
#include "result_file.h"
#include "run_words.h"
#include "scenario.h"
#include "signals.h"
#include "simulated_result.h"
#include "simulated_run.h"
#include "simulation_page.h"
#include "train_plan.h"
#include "units.h"
#include "usage.h"

namespace sotto::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sotto plan examples/scenarios/ocean.toml\n"
    "  sotto plan examples/scenarios/ocean.toml --compressor quant:8 --compressor sign --codec "
    "none\n"
    "  sotto plan measured.toml --report plan.html     after `sotto bench exchange --scenario "
    "measured.toml`";

/// Short runs have this part of the rounds.
constexpr Round kShorter = 4;
/// Of those that had a short run, this part is simulated to the end, but so many at least.
constexpr std::size_t kFewer = 3;
constexpr std::size_t kLeastFinalists = 3;
/// Evaluations of a run, where the task does not say how many.
constexpr Round kEvaluations = 50;

struct PlanOptions {
  CommonOptions common;
  std::string scenario;
  CandidateLists lists;
  std::string codec;
  std::uint64_t budget = 12;
  std::uint64_t threads = 0;
  std::string report;
};

/// Ctrl-C, or a run that could not be simulated.
struct PlanFailed {
  std::string why;
};

class Planner {
 public:
  Planner(const PlanOptions& options, Scenario scenario, const Output& output);

  /// The runs that were simulated to the end; all-reduce first. Throws PlanFailed.
  std::vector<PlannedRun> find();
  Goal goal() const { return goal_; }
  Json to_json(const std::vector<PlannedRun>& runs, const Verdict& verdict) const;
  const Scenario& scenario() const { return scenario_; }
  /// Of the runs that find() gave.
  const std::vector<RunPicture>& pictures() const { return pictures_; }

 private:
  std::vector<Candidate> screened();
  std::vector<Candidate> shortened(std::vector<Candidate> candidates);
  SimulatedRun simulate(const Candidate& candidate, Round shorter, const std::string& title);
  void say_codec() const;

  const PlanOptions& options_;
  Scenario scenario_;
  const Output& output_;
  CodecMeter codec_;
  Goal goal_;
  int threads_;
  Round rounds_ = 0;
  std::vector<Candidate> candidates_;  ///< in the order of their promise
  std::vector<Refusal> refused_;
  std::vector<std::string> short_runs_;
  std::vector<RunPicture> pictures_;
};

Planner::Planner(const PlanOptions& options, Scenario scenario, const Output& output)
    : options_(options),
      scenario_(std::move(scenario)),
      output_(output),
      codec_(options.codec, scenario_),
      goal_(!scenario_.timing_only && (scenario_.target_accuracy || scenario_.target_loss)
                ? Goal::target
                : Goal::epoch),
      threads_(gradient_threads(options.threads)) {
  rounds_ = make_train_plan(parse_run("allreduce", scenario_.task)).run.rounds;
  if (!scenario_.task.eval_every) {
    scenario_.task.eval_every = std::max<Round>(1, rounds_ / kEvaluations);
  }
}

/// Every candidate that the gate lets through, by the model.
std::vector<Candidate> Planner::screened() {
  std::vector<Candidate> candidates;
  const auto words = candidate_words(options_.lists, scenario_, rounds_);
  for (const std::string& one : words) {
    if (stop_requested()) {
      throw PlanFailed{kInterrupted};
    }
    try {
      candidates.push_back(screen(scenario_, one, codec_));
    } catch (const Error& error) {
      refused_.push_back({one, with_option_names(error.what())});
    }
  }
  output_.line(fmt::format("{} screened by the model, {} refused: algorithm and graph do not fit",
                           counted(candidates.size(), "candidate"), refused_.size()));
  if (candidates.empty()) {
    throw Error(
        fmt::format("no run is possible: {}: {}", refused_.front().words, refused_.front().why));
  }
  return in_order_of_promise(std::move(candidates));
}

SimulatedRun Planner::simulate(const Candidate& candidate, Round shorter,
                               const std::string& title) {
  output_.line(fmt::format("{}: {}", title, candidate.words));
  Scenario scenario = scenario_;
  codec_.apply(candidate.codec, scenario);
  if (shorter > 1) {
    scenario.task.epochs.reset();
    scenario.task.rounds = std::max<Round>(1, rounds_ / shorter);
    scenario.task.eval_every = std::max<Round>(1, *scenario.task.rounds / kEvaluations);
  }
  if (scenario_.timing_only && candidate.rounds < rounds_) {
    scenario.task.epochs.reset();
    scenario.task.rounds = candidate.rounds;
  }
  auto simulated = simulate_run(scenario, candidate.words,
                                {.threads = threads_,
                                 .timeline = shorter == 1 && !options_.report.empty(),
                                 .progress = output_.talks()});
  if (!simulated.ok()) {
    throw PlanFailed{stop_requested()
                         ? kInterrupted
                         : fmt::format("{}: {}", candidate.words, simulated.status().message())};
  }
  return std::move(*simulated);
}

/// Seconds to the target, of those that have reached it; the others behind, by their loss when the
/// quickest of all had ended; those that ended early last.
std::vector<Candidate> Planner::shortened(std::vector<Candidate> candidates) {
  std::vector<Json> results;
  std::vector<const Json*> pointers;
  results.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    const std::string title =
        fmt::format("short run {} of {}", results.size() + 1, candidates.size());
    results.push_back(simulate(candidate, kShorter, title).result);
    if (early_end(results.back()).empty()) {
      pointers.push_back(&results.back());
    }
    short_runs_.push_back(candidate.words);
  }
  const double level = common_expense(Expense::virtual_time, pointers);
  struct Place {
    double time;
    double loss;
    Candidate candidate;
  };
  constexpr double kLast = std::numeric_limits<double>::infinity();
  std::vector<Place> places;
  places.reserve(candidates.size());
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    const Json& time = results[k].at("time_to_target_s");
    const auto standing = standing_at(Expense::virtual_time, level, results[k]);
    const bool counts = standing && std::isfinite(standing->loss) && early_end(results[k]).empty();
    places.push_back({time.is_number() ? time.get<double>() : kLast,
                      counts ? standing->loss : kLast, std::move(candidates[k])});
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.time, a.loss) < std::pair(b.time, b.loss);
  });
  std::vector<Candidate> ordered;
  ordered.reserve(places.size());
  for (Place& place : places) {
    ordered.push_back(std::move(place.candidate));
  }
  return ordered;
}

std::vector<PlannedRun> Planner::find() {
  candidates_ = screened();
  say_codec();
  std::vector<Candidate> chosen(
      candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                     candidates_.size(), options_.budget)));
  if (goal_ == Goal::target) {
    chosen = shortened(std::move(chosen));
  }
  std::vector<Candidate> finalists;
  const auto enter = [&](const Candidate& candidate) {
    if (std::none_of(finalists.begin(), finalists.end(),
                     [&](const Candidate& one) { return one.words == candidate.words; })) {
      finalists.push_back(candidate);
    }
  };
  // The baselines: all-reduce, and the best uncompressed run of those that were looked at.
  for (const auto* from : {&candidates_, &chosen}) {
    const bool all = from == &candidates_;
    const auto found = std::find_if(from->begin(), from->end(), [&](const Candidate& one) {
      return all ? one.words == "allreduce" : !one.compressed && one.words != "allreduce";
    });
    if (found != from->end()) {
      enter(*found);
    }
  }
  const std::size_t most = std::max(kLeastFinalists, chosen.size() / kFewer);
  for (std::size_t k = 0; k < std::min(most, chosen.size()); ++k) {
    enter(chosen[k]);
  }
  std::vector<PlannedRun> runs;
  for (const Candidate& finalist : finalists) {
    const std::string title = fmt::format("run {} of {}", runs.size() + 1, finalists.size());
    pictures_.push_back({finalist.words, simulate(finalist, 1, title)});
    runs.push_back({finalist, pictures_.back().run.result});
  }
  return runs;
}

void Planner::say_codec() const {
  if (!codec_.measures()) {
    return;
  }
  std::vector<std::string> said;
  output_.line("codec speeds, in bytes of float32, measured here (--codec fixes them):");
  for (const Candidate& candidate : candidates_) {
    const std::string name = candidate.method.substr(candidate.method.find(' ') + 1);
    if (std::find(said.begin(), said.end(), name) == said.end()) {
      said.push_back(name);
      output_.line(fmt::format("  {}: encodes {}/s, decodes {}/s", name,
                               amount(1 / candidate.codec.encode_s_per_byte),
                               amount(1 / candidate.codec.decode_s_per_byte)));
    }
  }
}

Json Planner::to_json(const std::vector<PlannedRun>& runs, const Verdict& verdict) const {
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json candidates = Json::array();
  for (const Candidate& one : candidates_) {
    candidates.push_back({{"name", one.words},
                          {"predicted_s_per_round", one.seconds_per_round},
                          {"predicted_bytes_per_round", one.bytes_per_round},
                          {"spectral_gap", one.spectral_gap},
                          {"encode_s_per_byte", one.codec.encode_s_per_byte},
                          {"decode_s_per_byte", one.codec.decode_s_per_byte},
                          {"short_run", std::find(short_runs_.begin(), short_runs_.end(),
                                                  one.words) != short_runs_.end()}});
  }
  Json refused = Json::array();
  for (const Refusal& refusal : refused_) {
    refused.push_back({{"name", refusal.words}, {"why", refusal.why}});
  }
  Json finished = Json::array();
  for (const PlannedRun& run : runs) {
    finished.push_back({{"name", run.candidate.words},
                        {"compressed", run.candidate.compressed},
                        {"predicted_s_per_round", run.candidate.seconds_per_round},
                        {"simulated_s_per_round", optional(run.seconds_per_round())},
                        {"prediction_error", optional(run.error())}});
    finished.back().update(run.result);
  }
  return {{"sotto", SOTTO_VERSION},
          {"scenario", scenario_.title},
          {"nodes", scenario_.nodes},
          {"ranked_by", goal_ == Goal::target ? "time_to_target" : "time_per_epoch"},
          {"codec_measured", codec_.measures()},
          {"winner", verdict.winner ? Json(runs[*verdict.winner].candidate.words) : Json(nullptr)},
          {"compress", verdict.winner ? Json(verdict.compress) : Json(nullptr)},
          {"over_allreduce", optional(verdict.over_allreduce)},
          {"over_best_uncompressed", optional(verdict.over_best_uncompressed)},
          {"verdict", verdict.lines},
          {"command", verdict.winner
                          ? Json(train_command(runs[*verdict.winner].candidate.words, scenario_))
                          : Json(nullptr)},
          {"runs", finished},
          {"candidates", candidates},
          {"refused", refused}};
}

ComparisonTable table_of(const std::vector<PlannedRun>& runs) {
  ComparisonTable table = {{"run", "predicted s/round", "simulated s/round", "error", "to target",
                            "accuracy", "sent/node"},
                           {},
                           ""};
  for (const PlannedRun& run : runs) {
    const auto target = time_of(run, Goal::target);
    const auto simulated = run.seconds_per_round();
    const auto error = run.error();
    const Json& last = run.result.at("final");
    table.rows.push_back({run.candidate.words,
                          fmt::format("{:.4g}", run.candidate.seconds_per_round),
                          simulated ? fmt::format("{:.4g}", *simulated) : "ended early",
                          error ? fmt::format("{:+.1f} %", 100 * *error) : "–",
                          target ? duration_text(*target) : "–",
                          last.is_object() ? percent(number_or_nan(last.at("accuracy"))) : "–",
                          amount(bytes_per_node(run.result))});
  }
  return table;
}

std::vector<RepeatedRun> as_repeated(const std::vector<PlannedRun>& runs) {
  std::vector<RepeatedRun> repeated;
  repeated.reserve(runs.size());
  for (const PlannedRun& run : runs) {
    repeated.push_back({.words = run.candidate.words,
                        .rounds = run.result.at("rounds").get<Round>(),
                        .results = {run.result}});
  }
  return repeated;
}

int conclude(const PlanOptions& options, const Planner& planner,
             const std::vector<PlannedRun>& runs, const Output& output) {
  const Verdict verdict = judge(runs, planner.goal());
  ComparisonTable table = table_of(runs);
  if (planner.goal() == Goal::epoch) {
    table.note =
        "ranked by the time for a pass over the data, whatever the loss: the scenario has "
        "no [target]";
  }
  show_table(table, output);
  output.line("");
  for (const std::string& line : verdict.lines) {
    output.line(line);
  }
  const Json result = planner.to_json(runs, verdict);
  if (verdict.winner) {
    output.line(fmt::format("  {}", result.at("command").get<std::string>()));
  }
  if (!options.report.empty()) {
    for (const std::string& line : verdict.lines) {
      table.note += (table.note.empty() ? "" : "; ") + line;
    }
    write_result_file("--report", options.report,
                      simulation_page("Plan: " + planner.scenario().title, as_repeated(runs),
                                      {table}, marks_of(planner.scenario()), planner.pictures()));
    output.line(fmt::format("\nreport: {}", options.report));
  }
  output.json(result);
  return kDone;
}

int run(const PlanOptions& options, const CLI::App& command) {
  check_writable("--report", options.report);
  if (options.budget < 1) {
    refuse("--budget", "0", "at least one candidate must be simulated");
  }
  const Output output(options.common);
  Scenario scenario = read_scenario(options.scenario, command);
  output.line(fmt::format("{}: {} nodes", scenario.title, scenario.nodes));
  catch_stop_signals();
  try {
    Planner planner(options, std::move(scenario), output);
    const auto runs = planner.find();
    return conclude(options, planner, runs, output);
  } catch (const PlanFailed& failure) {
    fmt::print(stderr, "sotto: {}\n", failure.why);
    return kFailed;
  }
}

}  // namespace

Command add_plan_command(CLI::App& program) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = program.add_subcommand(
      "plan", "Says which algorithm, bits and graph are there first on a network");
  OptionGroup group(*command, "What is planned");
  group
      .option("SCENARIO", options->scenario, "FILE.toml",
              "The scenario: declared, or written by `sotto bench exchange`")
      .required();
  group.list("--algorithm", options->lists.algorithms, "NAME",
             "Consider this one only; may be given repeatedly");
  group.list("--compressor", options->lists.compressors, "SPEC",
             "Consider this one only; may be given repeatedly");
  group.list("--topology", options->lists.topologies, "SPEC",
             "Consider this one only; may be given repeatedly");
  group.option("--codec", options->codec, "SPEED",
               "Speed of encoding and decoding, in bytes of float32, e.g. \"1 GB/s\"; none: no "
               "time; measure: on this machine, as where the scenario says nothing");
  group.count("--budget", options->budget, "N",
              "So many candidates are simulated; a third of them, and the baselines, to the end",
              10'000);
  group.count("--threads", options->threads, "N",
              "Threads that take gradients; by default one a core. Results do not depend on it",
              1024);
  group.option("--report", options->report, "FILE.html",
               "Write a self-contained page: curves, graphs, timelines");
  add_common_options(*command, options->common);
  default_to_scenario_seed(*command);
  command->footer(kExamples);
  return {command, [command, options] { return run(*options, *command); }};
}

}  // namespace sotto::cli
