#include "emulated_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "child.h"
#include "compute_spec.h"
#include "run_words.h"

namespace sotto::netlab {
namespace {

constexpr std::chrono::milliseconds kLook{5};
/// The others of a node that failed may say why, if it was not the first to.
constexpr std::chrono::milliseconds kGrace{500};
constexpr int kPort = 29'500;

std::vector<std::string> words_of(const cli::Scenario& scenario, const ProgramRun& run, Host host) {
  std::vector<std::string> words = {run.program, "train"};
  for (const std::string& word : cli::train_words(run.words, scenario.task_words)) {
    words.push_back(word);
  }
  std::erase_if(words, [](const std::string& word) { return word.starts_with("--eval-every="); });
  const ComputeTime& pace = scenario.paces[static_cast<std::size_t>(host)].compute;
  const std::vector<std::string> more = {
      "--transport=" + run.transport,
      "--bind=" + shaped_address(host),
      "--insecure",
      "--eval-every=0",  // evaluations are no part of what is measured
      fmt::format("--seed={}", scenario.task.common.seed),
      "--gradient-time=" + cli::compute_time_text(pace),
      "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  if (host == 0) {
    words.emplace_back("--json=-");
  }
  return words;
}

class Job {
 public:
  Job(const Lab& lab, const cli::Scenario& scenario, const ProgramRun& run) {
    for (Host host = 0; host < lab.hosts(); ++host) {
      nodes_.push_back(std::make_unique<Child>(
          lab.at(host), words_of(scenario, run, host),
          std::map<std::string, std::string>{{"RANK", fmt::to_string(host)},
                                             {"WORLD_SIZE", fmt::to_string(lab.hosts())},
                                             {"MASTER_ADDR", free_address(0)},
                                             {"MASTER_PORT", fmt::to_string(kPort)}}));
    }
  }

  bool all_ended() {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [](auto& node) { return node->ended().has_value(); });
  }
  bool any_failed() {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](auto& node) { return node->ended().value_or(0) != 0; });
  }
  /// What those that failed said.
  Status fault() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (const int status = nodes_[i]->ended().value_or(0); status != 0) {
        return {Fault::unexpected,
                fmt::format("node {} ended with status {}: {}", i, status, nodes_[i]->errors())};
      }
    }
    return {};
  }
  std::string result() const { return nodes_.front()->output(); }

 private:
  std::vector<std::unique_ptr<Child>> nodes_;
};

}  // namespace

Result<cli::Json> run_program(const Lab& lab, const cli::Scenario& scenario, const ProgramRun& run,
                              const std::atomic<bool>& stop) {
  Job job(lab, scenario, run);
  auto deadline =
      Deadline::after(std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * run.patience_s)));
  bool failed = false;
  while (!job.all_ended()) {
    if (stop) {
      return Status(Fault::unexpected, "interrupted");
    }
    if (!failed && job.any_failed()) {
      failed = true;
      deadline = Deadline::after(kGrace);
    }
    if (deadline.expired()) {
      return failed ? job.fault()
                    : Status(Fault::deadline,
                             fmt::format("the run was not over after {:.0f} s", run.patience_s));
    }
    std::this_thread::sleep_for(kLook);
  }
  if (Status status = job.fault(); !status.ok()) {
    return status;
  }
  cli::Json result = cli::Json::parse(job.result(), nullptr, false);
  if (result.is_discarded()) {
    return Status(Fault::malformed, "node 0 printed no result");
  }
  return result;
}

}  // namespace sotto::netlab
