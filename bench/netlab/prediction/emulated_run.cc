#include "emulated_run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/console/child.h>
#include <sotto/study/compute_spec.h>
#include <sotto/study/train/run_spec.h>

#include "bench/support/train_words.h"
#include "emulated_events.h"
#include "start_barrier.h"

namespace sotto::netlab {
namespace {

using Clock = StartBarrier::Clock;

constexpr std::chrono::milliseconds kLook{5};
/// The others of a node that failed may say why, if it was not the first to.
constexpr std::chrono::milliseconds kGrace{500};
constexpr int kPort = 29'500;

std::vector<std::string> words_of(const study::Scenario& scenario, const ProgramRun& run,
                                  Host host) {
  std::vector<std::string> words = {run.program, "train"};
  auto settings = joined_settings(study::parse_run(run.words), scenario.task_settings);
  std::erase_if(settings, [](const auto& setting) { return setting.name == "eval-every"; });
  const std::vector<std::string> given = bench::option_words(settings);
  words.insert(words.end(), given.begin(), given.end());
  const ComputeTime& pace = scenario.node_specs[static_cast<std::size_t>(host)].compute;
  const std::vector<std::string> more = {
      "--transport=" + run.transport,
      "--bind=" + shaped_address(host),
      "--insecure",
      "--eval-every=0",  // evaluations are no part of what is measured
      fmt::format("--seed={}", scenario.task.seed),
      "--gradient-time=" + study::compute_time_text(pace),
      "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  if (host == 0) {
    words.emplace_back("--json=-");
  }
  return words;
}

/// Until the last node has ended, as the simulator counts: with losses they end apart.
double training_s(const Json& result) { return result.at("time").at("slowest_s"); }

/// The processes of one run. Times are of the scenario: from the first step on or, where a process
/// is started late, from the start of the first; the program then waits until all are there.
class Job {
 public:
  Job(EmulatedNetwork& network, const study::Scenario& scenario, const ProgramRun& run)
      : network_(network),
        scenario_(scenario),
        run_(run),
        events_(emulated_events(scenario)),
        joined_s_(to_seconds(last_start(scenario))),
        eventful_(!events_.empty() || joined_s_ > 0),
        started_(Clock::now()),
        nodes_(scenario.node_specs.size()),
        ended_s_(nodes_.size()),
        out_(nodes_.size(), false) {
    if (eventful_) {
      barrier_.emplace(network, free_address(0), kPort);
    }
    start_those_due();
  }

  bool eventful() const { return eventful_; }

  /// Does what is due, and looks who has ended.
  void go_on() {
    start_those_due();
    while (next_ < events_.size() && due(events_[next_].at)) {
      play(events_[next_++]);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i] && !ended_s_[i] && nodes_[i]->ended()) {
        ended_s_[i] = now_s();
      }
    }
  }
  /// All have ended that may.
  bool over() const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!ended_s_[i] && !out_[i]) {
        return false;
      }
    }
    return true;
  }
  bool any_failed() {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](auto& node) { return node && node->ended().value_or(0) != 0; });
  }
  /// The nodes that did not finish, and why; the first in front.
  std::vector<NodeFault> faults() {
    std::vector<NodeFault> all;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (out_[i] || (nodes_[i] && nodes_[i]->ended().value_or(0) != 0)) {
        all.push_back({.node = static_cast<Host>(i),
                       .at_s = ended_s_[i].value_or(now_s()),
                       .what = said_by(i)});
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const NodeFault& a, const NodeFault& b) { return a.at_s < b.at_s; });
    return all;
  }
  Result<ProgramEnd> end() {
    ProgramEnd end = {.result = {}, .faults = faults()};
    if (!end.faults.empty()) {
      end.seconds = end.faults.back().at_s;
    }
    if (nodes_.front()->ended() == 0) {
      end.result = Json::parse(nodes_.front()->output(), nullptr, false);
      if (end.result.is_discarded()) {
        return Status(Fault::malformed, "node 0 printed no result");
      }
      end.seconds = std::max(end.seconds, joined_s_ + training_s(end.result));
    }
    return end;
  }

 private:
  void start_those_due() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i] &&
          seconds_of(Clock::now() - started_) >= to_seconds(scenario_.node_specs[i].start)) {
        const auto host = static_cast<Host>(i);
        nodes_[i] = std::make_unique<console::Child>(
            words_of(scenario_, run_, host),
            console::ChildSetup{.variables = {{"RANK", fmt::to_string(i)},
                                              {"WORLD_SIZE", fmt::to_string(nodes_.size())},
                                              {"MASTER_ADDR", free_address(0)},
                                              {"MASTER_PORT", fmt::to_string(kPort)}},
                                .network = network_.at(host).fd()});
      }
    }
  }

  /// What has passed of the scenario's time.
  double now_s() const {
    const auto begun = barrier_ ? barrier_->passed() : std::nullopt;
    return begun ? joined_s_ + seconds_of(Clock::now() - *begun)
                 : std::min(joined_s_, seconds_of(Clock::now() - started_));
  }
  bool due(SimTime at) const {
    return (barrier_->passed() || to_seconds(at) < joined_s_) && now_s() >= to_seconds(at);
  }

  void play(const EmulatedEvent& what) {
    using Kind = EmulatedEvent::Kind;
    const auto i = static_cast<std::size_t>(what.host);
    if (what.kind == Kind::link) {
      if (!out_[i] && !out_[static_cast<std::size_t>(what.to)]) {
        network_.set_link(what.host, what.to, what.shape);
      }
      return;
    }
    if (!nodes_[i] || out_[i]) {
      return;
    }
    switch (what.kind) {
      case Kind::suspend:
        return nodes_[i]->signal(SIGSTOP);
      case Kind::resume:
        return nodes_[i]->signal(SIGCONT);
      case Kind::crash:
        nodes_[i]->signal(SIGKILL);
        break;
      default:
        nodes_[i]->signal(SIGSTOP);
        isolate(what.host);
    }
    if (!ended_s_[i]) {
      ended_s_[i] = now_s();
      out_[i] = true;
    }
  }
  void isolate(Host host) {
    for (Host other = 0; other < network_.hosts(); ++other) {
      network_.set_link(host, other, {.bytes_per_s = 0});
      network_.set_link(other, host, {.bytes_per_s = 0});
    }
  }

  std::string said_by(std::size_t i) {
    if (out_[i]) {
      return "the scenario took it away";
    }
    std::string errors = nodes_[i]->errors();
    errors.erase(errors.find_last_not_of('\n') + 1);
    return fmt::format("it ended with status {}: {}", *nodes_[i]->ended(), errors);
  }

  EmulatedNetwork& network_;
  const study::Scenario& scenario_;
  const ProgramRun& run_;
  const std::vector<EmulatedEvent> events_;
  std::size_t next_ = 0;
  const double joined_s_;  ///< the time when all nodes are there
  const bool eventful_;
  const Clock::time_point started_;
  std::vector<std::unique_ptr<console::Child>> nodes_;
  std::vector<std::optional<double>> ended_s_;
  std::vector<bool> out_;  ///< crashed or vanished
  std::optional<StartBarrier> barrier_;
};

Status fault_of(const NodeFault& fault) {
  return {Fault::unexpected, fmt::format("node {}: {}", fault.node, fault.what)};
}

}  // namespace

Result<ProgramEnd> run_program(EmulatedNetwork& network, const study::Scenario& scenario,
                               const ProgramRun& run, const std::atomic<bool>& stop) {
  Job job(network, scenario, run);
  auto deadline =
      Deadline::after(std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * run.patience_s)));
  bool failed = false;
  while (!job.over()) {
    if (stop) {
      return Status(Fault::unexpected, "interrupted");
    }
    if (!failed && !job.eventful() && job.any_failed()) {
      failed = true;
      deadline = Deadline::after(kGrace);
    }
    if (deadline.expired()) {
      return failed ? fault_of(job.faults().front())
                    : Status(Fault::deadline,
                             fmt::format("the run was not over after {:.0f} s", run.patience_s));
    }
    std::this_thread::sleep_for(job.eventful() ? kLook / 5 : kLook);
    job.go_on();
  }
  if (const auto faults = job.faults(); !job.eventful() && !faults.empty()) {
    return fault_of(faults.front());
  }
  return job.end();
}

}  // namespace sotto::netlab
