#include <sotto/study/plan/plan_search.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <sotto/study/plan/internal/planned_groups.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/study/strategies/model_shape.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

/// Evaluations of a run, at least, if it has the rounds.
constexpr Round kEvaluations = 40;
/// A candidate is worth a simulation if it promises to be no later than this × the best.
constexpr double kPromising = 1.1;
/// A run that is later than this × the best is not continued.
constexpr double kHopeless = 1.3;
/// Rounds that a run which misses the target would need, as a multiple of its own; a guess.
constexpr double kBeyond = 1.5;
/// How many uncompressed runs, and how many compressed ones, are simulated with other seeds at
/// most; none that is later than this multiple of the best of them.
constexpr std::size_t kMostRepeated = 3;
constexpr double kNearBest = 1.15;
/// The part of the budget for uncompressed runs alone, and for compressed ones alone.
constexpr std::uint64_t kPartOfBudget = 4;
/// Where only the time of a round counts, this part of the budget is simulated, but kLeast at
/// least.
constexpr std::uint64_t kFewer = 3;
constexpr std::uint64_t kLeast = 3;
/// Besides the scenario's own runs a user sees this many of the best.
constexpr std::size_t kShown = 6;

constexpr double kEndless = std::numeric_limits<double>::infinity();

bool any(const Candidate&) { return true; }
bool plain(const Candidate& candidate) { return !candidate.compressed; }
bool compressed(const Candidate& candidate) { return candidate.compressed; }
bool may_take_longer(const Candidate& candidate) { return candidate.may_take_longer; }

}  // namespace

PlanSearch::PlanSearch(SearchOptions options, Scenario scenario)
    : options_(std::move(options)),
      scenario_(std::move(scenario)),
      codec_(options_.codec, scenario_),
      ranking_(
          {.goal = !scenario_.timing_only && scenario_.target.given() ? Goal::target : Goal::epoch,
           .money = options_.by_money,
           .currency = options_.by_money ? scenario_.costs.value().currency : ""}) {
  const TrainPlan plan =
      make_train_plan(options_of(scenario_, run_of(scenario_.attack ? "robust" : kBaseline)));
  check_target(scenario_, plan.tasks->data().regression());
  const Round finest = std::max<Round>(1, plan.run.rounds / kEvaluations);
  scenario_.task.eval_every = std::min(scenario_.task.eval_every.value_or(finest), finest);
  if (ranking_.goal == Goal::epoch) {
    scenario_.task.eval_every = std::max<Round>(1, plan.run.rounds / 4);
    options_.seeds = 1;
  }
  const ModelShape model = shape_of(plan);
  const double model_bytes = 4.0 * static_cast<double>(model.parameters);
  space_ = {.lists = options_.lists,
            .goal = ranking_.goal,
            .rounds = plan.run.rounds,
            .graphs = planned_graphs(without_traces(scenario_), model_bytes),
            .groups = planned_groups(without_traces(scenario_), model_bytes),
            .tied = model.tied};
  score_terms_ = study::score_terms(plan);
}

bool PlanSearch::simulated(const RunSpec& run) const {
  return std::any_of(runs_.begin(), runs_.end(),
                     [&](const PlannedRun& one) { return one.candidate.run.name == run.name; });
}

void PlanSearch::tell(const SettingText& line) const {
  if (options_.tell) {
    options_.tell(line);
  }
}

std::string PlanSearch::label_of(const RunSpec& run) const {
  const std::string* topology = run.label.empty() ? run.find("topology") : nullptr;
  const auto graph = std::ranges::find_if(space_.graphs, [&](const PlannedGraph& one) {
    return topology != nullptr && one.spec == *topology && one.label != one.spec;
  });
  if (graph == space_.graphs.end()) {
    return run.shown();
  }
  std::vector<RunSetting> settings = run.settings;
  std::ranges::find(settings, "topology", &RunSetting::name)->value = graph->label;
  return words_of(settings);
}

Status PlanSearch::screen() {
  auto screened = screen_space(space_, scenario_, codec_, options_.stop);
  if (!screened.ok()) {
    return screened.status();
  }
  candidates_ = in_order_of_promise(std::move(screened->candidates),
                                    [this](const Candidate& one) { return spent_in_round(one); });
  refused_ = std::move(screened->refused);
  tell(fmt::format("{}: {} nodes", scenario_.title, scenario_.nodes));
  tell(fmt::format(
      "{} screened by the model{}", counted(candidates_.size(), "candidate"),
      refused_.empty()
          ? ""
          : fmt::format(", {} refused: what they are made of does not fit", refused_.size())));
  say_bounds();
  refused_.insert(refused_.end(), screened->untried.begin(), screened->untried.end());
  return {};
}

void PlanSearch::say_bounds() const {
  const auto bounded = std::ranges::count_if(candidates_, may_take_longer);
  if (bounded > 0) {
    tell(fmt::format(
        "frames of {} cross links whose queues can overflow, of which the model knows nothing: its "
        "times are lower bounds, for which no way to step is left out",
        counted(static_cast<std::uint64_t>(bounded), "candidate")));
  }
}

double PlanSearch::spent(double seconds, double bytes_per_node) const {
  if (!ranking_.money) {
    return seconds;
  }
  const auto nodes = static_cast<std::size_t>(scenario_.nodes);
  return bill_of(*scenario_.costs, std::vector(nodes, bytes_per_node), std::vector(nodes, seconds))
      .money;
}

double PlanSearch::spent_in_round(const Candidate& candidate) const {
  return spent(candidate.predicted_seconds_per_round, candidate.bytes_per_round);
}

double PlanSearch::promise(const Candidate& candidate) const {
  return spent_in_round(candidate) * guess_.of(candidate);
}

double PlanSearch::best(const Admitted& admitted) const {
  double least = kEndless;
  for (const PlannedRun& run : runs_) {
    if (admitted(run.candidate)) {
      least = std::min(least, run.figures(ranking_).front().value_or(kEndless));
    }
  }
  return least;
}

double PlanSearch::expectation(const Candidate& candidate) const {
  return promise(candidate) * (candidate.may_take_longer ? longer_.of(candidate) : 1);
}

const Candidate* PlanSearch::next(const Admitted& admitted) const {
  const Candidate* most = nullptr;
  const double near = kPromising * best(admitted);
  for (const Candidate& one : candidates_) {
    if (admitted(one) && !simulated(one.run) && promise(one) < near &&
        (most == nullptr || expectation(one) < expectation(*most))) {
      most = &one;
    }
  }
  return most;
}

Status PlanSearch::explore(std::uint64_t budget, const Admitted& admitted) {
  for (std::uint64_t k = 0; k < budget; ++k) {
    const Candidate* candidate = next(admitted);
    if (candidate == nullptr) {
      return {};
    }
    if (Status added = add_run(*candidate, kHopeless * best(admitted)); !added.ok()) {
      return added;
    }
  }
  return {};
}

Status PlanSearch::explore_by_pace() {
  // Bounds are no order of times: all that may be simulated is.
  const bool bounds = std::ranges::any_of(candidates_, may_take_longer);
  const Status explored =
      add_first(std::max(kLeast, bounds ? options_.budget : options_.budget / kFewer), any);
  return explored.ok() ? add_first(1, plain) : explored;
}

Status PlanSearch::add_first(std::uint64_t count, const Admitted& admitted) {
  for (const Candidate& one : candidates_) {
    if (count == 0) {
      break;
    }
    if (!admitted(one) || one.baseline()) {
      continue;
    }
    --count;
    if (simulated(one.run)) {
      continue;
    }
    if (Status added = add_run(one, kEndless); !added.ok()) {
      return added;
    }
  }
  return {};
}

Result<SimulatedRun> PlanSearch::simulate(const Candidate& candidate, std::uint64_t seed,
                                          const std::function<bool(const HistoryPoint&)>& enough) {
  Scenario scenario = scenario_;
  scenario.task.seed = seed;
  codec_.apply(candidate.codec, scenario);
  if (scenario_.timing_only && candidate.rounds < rounds()) {
    scenario.task.epochs.reset();
    scenario.task.rounds = candidate.rounds;
  }
  auto simulated = simulate_run(scenario, candidate.run,
                                {.threads = options_.threads,
                                 .timeline = options_.timelines,
                                 .by_worst = options_.by_worst,
                                 .observer = options_.observer,
                                 .stop = options_.stop,
                                 .enough = enough});
  if (simulated.result.interrupted) {
    return Status(Fault::stopped, std::string(kStopped));
  }
  return simulated;
}

Status PlanSearch::add_run(const Candidate& candidate, double hopeless) {
  tell(fmt::format("run {}: {}", runs_.size() + 1, label_of(candidate.run)));
  TargetWatch watch(scenario_.target);
  auto simulated = simulate(candidate, scenario_.task.seed, [&](const HistoryPoint& point) {
    return !watch.add(point) && ranking_.goal == Goal::target &&
           spent(point.time_s, point.bytes_per_node) > hopeless;
  });
  if (!simulated.ok()) {
    return simulated.status();
  }
  runs_.push_back({.candidate = candidate,
                   .label = label_of(candidate.run),
                   .simulated = std::move(*simulated)});
  const SimulationResult& result = runs_.back().simulated.result;
  if (const auto error = runs_.back().error(); error && candidate.may_take_longer) {
    longer_.learn(candidate, 1 / (1 + *error));
  }
  if (ranking_.goal == Goal::target) {
    runs_.back().add_seed(scenario_.target, result);
    const auto& time = runs_.back().times.front();
    const auto done = static_cast<double>(result.rounds);
    const bool ended = done >= static_cast<double>(rounds()) || !result.early_end().empty();
    if (time) {
      guess_.learn(candidate, *time * done / result.virtual_s);
    } else if (ended) {
      guess_.learn(candidate, kBeyond * static_cast<double>(rounds()));
    } else {  // given up: it is known to need more, and nothing else
      guess_.learn(candidate, std::max(kHopeless * done, guess_.of(candidate)));
    }
  }
  return {};
}

Status PlanSearch::add_seeds() {
  for (const auto kind : {&plain, &compressed}) {
    const double least = best(kind);
    std::vector<PlannedRun*> near;
    for (PlannedRun& run : runs_) {
      const auto figure = figure_of(run, ranking_);
      if (kind(run.candidate) && figure && *figure <= kNearBest * least) {
        near.push_back(&run);
      }
    }
    std::stable_sort(near.begin(), near.end(), [this](const PlannedRun* a, const PlannedRun* b) {
      return *figure_of(*a, ranking_) < *figure_of(*b, ranking_);
    });
    near.resize(std::min(near.size(), kMostRepeated));
    for (PlannedRun* run : near) {
      if (Status added = add_seeds_of(*run); !added.ok()) {
        return added;
      }
    }
  }
  return {};
}

Status PlanSearch::add_seeds_of(PlannedRun& run) {
  for (std::uint64_t more = 1; more < options_.seeds; ++more) {
    const std::uint64_t seed = scenario_.task.seed + more;
    tell(fmt::format("seed {}: {}", seed, run.label));
    TargetWatch watch(scenario_.target);
    const auto simulated = simulate(
        run.candidate, seed, [&watch](const HistoryPoint& point) { return watch.add(point); });
    if (!simulated.ok()) {
      return simulated.status();
    }
    run.add_seed(scenario_.target, simulated->result);
  }
  return {};
}

/// All-reduce, the scenario's own runs, those with several seeds and others of the best.
std::vector<PlannedRun> PlanSearch::shown() {
  std::vector<std::size_t> order(runs_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank_of = [&](std::size_t k) {
    const PlannedRun& run = runs_[k];
    return std::tuple(!run.candidate.baseline(), !run.candidate.own, run.times.size() < 2,
                      figure_of(run, ranking_).value_or(kEndless));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank_of(a) < rank_of(b); });
  std::vector<PlannedRun> shown;
  std::size_t others = 0;
  for (const std::size_t k : order) {
    const PlannedRun& run = runs_[k];
    const bool always = run.candidate.own || run.candidate.baseline() || run.times.size() > 1;
    others += always ? 0 : 1;
    if (always || others <= kShown) {
      shown.push_back(run);
    }
  }
  return shown;
}

Result<std::vector<PlannedRun>> PlanSearch::find() {
  Status searched = search();
  if (!searched.ok() && runs_.empty()) {
    return searched;
  }
  interrupted_ = !searched.ok();
  if (interrupted_) {
    // Only what all have can be compared: the first seed.
    for (PlannedRun& run : runs_) {
      run.times.resize(std::min<std::size_t>(run.times.size(), 1));
      run.money.resize(run.times.size());
    }
  }
  return shown();
}

Status PlanSearch::search() {
  if (Status screened = screen(); !screened.ok()) {
    return screened;
  }
  say_codec();
  for (const Candidate& one : candidates_) {
    if (!one.own && !one.baseline()) {
      continue;
    }
    if (Status added = add_run(one, kEndless); !added.ok()) {
      return added;
    }
  }
  if (ranking_.goal == Goal::epoch) {
    return explore_by_pace();
  }
  const std::uint64_t part = std::max<std::uint64_t>(1, options_.budget / kPartOfBudget);
  Status explored = explore(options_.budget - std::min(options_.budget - 1, 2 * part), any);
  for (const auto kind : {&plain, &compressed}) {
    if (explored.ok()) {
      explored = explore(part, kind);
    }
  }
  return explored.ok() ? add_seeds() : explored;
}

void PlanSearch::say_codec() const {
  if (!codec_.measures()) {
    return;
  }
  std::set<std::string> said;
  tell("codec speeds, in bytes of float32, measured here (" + mention("codec") + " fixes them):");
  for (const Candidate& candidate : candidates_) {
    const std::string& name = candidate.compressor;
    if (said.insert(name).second) {
      tell(fmt::format("  {}: encodes {}/s, decodes {}/s", name,
                       amount(1 / candidate.codec.encode_s_per_byte),
                       amount(1 / candidate.codec.decode_s_per_byte)));
    }
  }
}

}  // namespace sotto::study
