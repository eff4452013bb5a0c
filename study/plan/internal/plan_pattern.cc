#include <sotto/study/plan/internal/plan_pattern.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <sotto/base/check.h>

#include <sotto/base/error.h>
#include <sotto/base/exchange.h>
#include <sotto/base/frame.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>
#include <sotto/sim/timing_job.h>
#include <sotto/study/simulation/job_nodes.h>

namespace sotto::study {
namespace {

/// No more rounds are listened to, however long a graph's period is.
constexpr Round kMostListened = 64;
/// Rounds after which an exchange is what it stays: replicas are handed over, variances frozen.
constexpr Round kFrozenAfter = 2;

/// Writes down what an algorithm posts.
class Overheard final : public ForwardingAlgorithm {
 public:
  /// `grouped`: exchanges within groups and between them follow each other, and are told apart.
  Overheard(std::unique_ptr<Algorithm> inner, Rank rank, std::vector<PlannedRound>& rounds,
            bool grouped)
      : ForwardingAlgorithm(std::move(inner)),
        rank_(rank),
        rounds_(rounds),
        cut_(!grouped && peers().frames_a_round > 1) {}

  void begin_round() override {
    if (++begun_ > rounds_.size()) {
      rounds_.emplace_back();
    }
    place_ = &PlannedRound::before;
    phases_.clear();
    inner().begin_round();
  }
  Status take_gradient(std::span<const float> gradient) override {
    place_ = &PlannedRound::after;
    phases_.clear();
    return inner().take_gradient(gradient);
  }
  Result<bool> next_exchange(Exchange& out) override {
    auto more = inner().next_exchange(out);
    if (more.ok() && *more) {
      note(out);
      rounds_[begun_ - 1].hides |= place_ == &PlannedRound::after && parameters_ready();
    }
    return more;
  }

 private:
  /// Whether a program (groups/program.h) has posted an exchange, and its phase there: programs and
  /// algorithms count phases from 0.
  using Step = std::pair<bool, std::uint16_t>;

  /// Writes down an exchange. That of a bucket goes with those of the others in the
  /// same phase: what passes between two nodes stands as one frame.
  void note(const Exchange& out) {
    auto& exchanges = rounds_[begun_ - 1].*place_;
    const Step step = {out.tag.bucket >= kMostBuckets, out.tag.phase};
    auto phase = cut_ ? std::ranges::find(phases_, step) : phases_.end();
    if (phase == phases_.end()) {
      phase = phases_.insert(phase, step);
    }
    const auto number = static_cast<std::size_t>(phase - phases_.begin());
    exchanges.resize(std::max(exchanges.size(), number + 1));
    PlannedExchange& exchange = exchanges[number];
    for (const PlannedFrame& frame : frames_of(out)) {
      const auto earlier = std::ranges::find_if(exchange, [&](const auto& other) {
        return other.from == frame.from && other.to == frame.to;
      });
      if (earlier == exchange.end()) {
        exchange.push_back(frame);
      } else {
        check(cut_, "in an exchange a node sends another one frame");
        earlier->bytes += frame.bytes;
        earlier->elements += frame.elements;
        ++earlier->buckets;
      }
    }
  }
  PlannedExchange frames_of(const Exchange& out) const {
    PlannedExchange frames;
    frames.reserve(out.sends.size());
    const std::byte* last = nullptr;
    for (const Send& send : out.sends) {
      frames.push_back({.from = rank_,
                        .to = send.to,
                        .bytes = send.frame.size(),
                        .encoded = send.frame.data() != last,
                        .elements = announced_elements(send.frame),
                        .tag = out.tag});
      last = send.frame.data();
    }
    return frames;
  }

  const Rank rank_;
  std::vector<PlannedRound>& rounds_;
  std::size_t begun_ = 0;
  std::vector<PlannedExchange> PlannedRound::*place_ = &PlannedRound::before;
  const bool cut_;            ///< the exchange is cut into buckets
  std::vector<Step> phases_;  ///< phases of this place's exchanges, in their order
};

}  // namespace

std::vector<PlannedRound> overhear(std::vector<std::unique_ptr<Algorithm>> algorithms, Round rounds,
                                   const GradientFunction& gradient, bool grouped) {
  std::vector<PlannedRound> heard;
  LockstepDriver driver;
  for (std::size_t rank = 0; rank < algorithms.size(); ++rank) {
    driver.add(std::make_unique<Overheard>(std::move(algorithms[rank]), static_cast<Rank>(rank),
                                           heard, grouped));
  }
  if (const Status status = driver.run(rounds, gradient); !status.ok()) {
    throw Error("the algorithm cannot be planned with: " + status.message());
  }
  return heard;
}

PlannedJob planned_job(const Scenario& scenario, const TrainPlan& plan) {
  OptimizerOptions options = plan.run.optimizer;
  // What is exchanged does not depend on how many local steps were made.
  options.communication_interval = 1;
  options.streaming = {};
  // The exchange does depend on them where the outer rule waits for the mixing.
  if (options.outer_step_rule && !options.outer_after_mixing) {
    options.step_rule = *std::exchange(options.outer_step_rule, std::nullopt);
  }
  AlgorithmSpec algorithm = parse_algorithm(options.algorithm);
  const auto freeze = algorithm.hyperparameters.optional_count(kFreezeStep);
  if (freeze) {
    algorithm.hyperparameters.replace(kFreezeStep, fmt::to_string(kFrozenAfter));
    options.algorithm = algorithm.text();
  }
  const JobNodes job_of = job_nodes(plan, options);
  TimingJob timing_job = make_timing_job(job_of, options, scenario.timing_only);
  const Round period = std::min(job_of.topology->period(), kMostListened);
  auto heard =
      overhear(std::move(timing_job.nodes), kFrozenAfter + period,
               timing_job.stand_ins() ? GradientFunction([](auto&&...) {}) : timing_job.gradient,
               !options.groups.empty());
  const auto steady = heard.end() - static_cast<std::ptrdiff_t>(period);
  PlannedJob job = {.beginning_rounds = freeze.value_or(0)};
  job.beginning.assign(heard.begin(), steady);
  job.steady.assign(steady, heard.end());
  return job;
}

std::vector<std::pair<Rank, Rank>> pairs_of(const PlannedJob& job) {
  std::set<std::pair<Rank, Rank>> pairs;
  for (const auto* rounds : {&job.beginning, &job.steady}) {
    for (const PlannedRound& round : *rounds) {
      for (const auto* exchanges : {&round.before, &round.after}) {
        for (const PlannedExchange& exchange : *exchanges) {
          for (const PlannedFrame& frame : exchange) {
            pairs.emplace(frame.from, frame.to);
          }
        }
      }
    }
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace sotto::study
