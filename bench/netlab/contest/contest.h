// A contest of `netlab race` or `netlab finish`: contenders that run in turn on one testbed, in
// several repetitions. One thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/trainers/launch/private_directory.h>

#include "bench/netlab/command_options.h"
#include "contender_result.h"
#include "contender_words.h"

namespace sotto::netlab {

/// What both commands ask for.
struct ContestRequest {
  CommandOptions options;
  TestbedShape testbed;
  std::vector<std::string> only;            ///< names that choose contenders; empty: all run
  std::string python = "/usr/bin/python3";  ///< the Python that has PyTorch
  std::uint64_t repeats = 3;
  double patience_s = 600;  ///< seconds after which one run has failed
};

/// `request` must live as long as the command; `rivals` are those that --only chooses from.
void add_contest_options(CLI::App& command, ContestRequest& request, const std::string& rivals);

/// A testbed and the contenders that run on it. Says on standard error what is done.
class Contest {
 public:
  /// Throws Error for a request that is wrong, and where no network can be emulated.
  Contest(const ContestRequest& request, std::vector<Contender> contenders);

  const Testbed& testbed() const { return testbed_; }
  /// What a link is like, by plain TCP; says so where it is not what was asked for.
  Json links() const;
  /// One result for each contender, with a failure for those that cannot run here.
  std::vector<ContenderResult> blank_results() const;
  /// Runs every contender without a failure once, one after the other; `take` gets what came and
  /// returns the seconds that count, if there are any, or what is wrong. Done early on Ctrl-C.
  using Take = std::function<Result<std::optional<double>>(ContenderResult&, const JobEnd&)>;
  using Ask = std::function<JobRequest(const Contender&)>;
  void repetition(std::vector<ContenderResult>& results, const Ask& ask, const Take& take,
                  const std::string& title) const;

 private:
  void say(const std::string& what) const;

  const ContestRequest& request_;
  std::vector<Contender> contenders_;
  Runners runners_;
  PrivateDirectory folder_;  ///< made before the testbed, which has a thread
  Testbed testbed_;
};

}  // namespace sotto::netlab
