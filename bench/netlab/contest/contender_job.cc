#include "contender_job.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <sotto/comm/deadline.h>
#include <sotto/console/child.h>

namespace sotto::netlab {
namespace {

constexpr std::chrono::milliseconds kJobLook{2};
/// The one that failed first may say why later than those that failed because of it.
constexpr std::chrono::milliseconds kGrace{500};

class Job {
 public:
  Job(const Testbed& testbed, const std::vector<Process>& processes)
      : testbed_(testbed), since_(testbed.carried()) {
    nodes_.reserve(processes.size());
    for (const Process& process : processes) {
      const NetworkNamespace* where = testbed.at(process.host);
      nodes_.push_back(std::make_unique<console::Child>(
          process.words, console::ChildSetup{.variables = process.variables,
                                             .network = where == nullptr ? -1 : where->fd()}));
    }
  }

  bool over() const {
    return std::ranges::all_of(nodes_, [](auto& node) { return node->ended().has_value(); });
  }
  bool any_failed() const {
    return std::ranges::any_of(nodes_, [](auto& node) { return node->ended().value_or(0) != 0; });
  }
  /// Notices when the first process begins with what is measured.
  void look_for_mark() {
    if (!warm_ && nodes_.front()->output().starts_with("warm\n")) {
      warm_ = true;
      since_ = testbed_.carried();
    }
  }
  JobEnd end() const {
    testbed_.settle();
    return {.output = nodes_.front()->output(), .carried = testbed_.carried() - since_};
  }
  Status fault() const {
    std::string said;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (const int status = nodes_[i]->ended().value_or(0); status != 0 && said.empty()) {
        const std::string words = last_line(nodes_[i]->errors());
        said = fmt::format("process {} ended with status {}{}{}", i, status,
                           words.empty() ? "" : ": ", words);
      }
    }
    return {Fault::unexpected, said};
  }

 private:
  const Testbed& testbed_;
  std::vector<std::unique_ptr<console::Child>> nodes_;
  std::uint64_t since_;
  bool warm_ = false;
};

}  // namespace

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\n\r -");
  if (end == std::string::npos) {
    return "";
  }
  const std::size_t before = text.find_last_of('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

Result<JobEnd> run_job(const Testbed& testbed, const std::vector<Process>& processes,
                       double patience_s, const std::atomic<bool>& stop) {
  Job job(testbed, processes);
  const auto patience = std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * patience_s));
  const Deadline deadline = Deadline::after(patience);
  std::optional<Deadline> grace;
  while (!job.over()) {
    if (stop) {
      return Status(Fault::unexpected, "interrupted");
    }
    if (!grace && job.any_failed()) {
      grace = Deadline::after(kGrace);
    }
    if (grace && grace->expired()) {
      return job.fault();
    }
    if (deadline.expired()) {
      return Status(Fault::deadline, fmt::format("it was not over after {:g} s", patience_s));
    }
    std::this_thread::sleep_for(kJobLook);
    job.look_for_mark();
  }
  if (job.any_failed()) {
    return job.fault();
  }
  return job.end();
}

}  // namespace sotto::netlab
