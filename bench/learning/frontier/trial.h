// One training run of `frontier`, and the file that keeps those which are done. One thread at a
// time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <sotto/comm/deadline.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/trainers/result.h>

namespace sotto::bench {

/// What is trained: a task with a way to deal its examples out.
struct Work {
  std::string name;  ///< "text", "text-blocks"
  std::string task;  ///< as `sotto train --task`
  std::string model;
  std::string partition;
  std::uint64_t batch = 8;  ///< examples a node and gradient
};

/// What all runs share.
struct Conditions {
  int nodes = 8;
  Round rounds = 400;
  std::string gradient = "20 ms";  ///< virtual time of a gradient
};

/// A network, in the words of a scenario.
struct Network {
  std::string name;       ///< name in the table, "100 Mbit/s, 25 ms"
  std::string bandwidth;  ///< each host's, up and down
  std::string latency;    ///< one way
};

/// The scenario in which a run is trained, or timed.
study::Scenario scenario_of(const Work& work, const Conditions& conditions, const Network& network,
                            const std::string& words, std::uint64_t seed, bool timing_only);

/// Training runs: each is done once, and kept in a file, from which an interrupted study goes on.
class Trials {
 public:
  /// Reads what `file` has of an earlier process. Throws Error for one that is no such file.
  Trials(std::filesystem::path file, StopRequest stop);

  /// The run's evaluations: taken from the file or, where it has none, trained. A run that fails
  /// (its model left float32's range) has none. Throws std::runtime_error when a signal interrupts
  /// it or the file cannot be written.
  const std::vector<HistoryPoint>& history(const Work& work, const Conditions& conditions,
                                           const std::string& words, std::uint64_t seed);

 private:
  void write() const;

  std::filesystem::path file_;
  StopRequest stop_;
  std::map<std::string, std::vector<HistoryPoint>> done_;
};

/// The virtual second in which the last node has finished each round of a run, by round: no
/// gradient is taken.
std::vector<double> round_times(const Work& work, const Conditions& conditions,
                                const Network& network, const std::string& words);

}  // namespace sotto::bench
