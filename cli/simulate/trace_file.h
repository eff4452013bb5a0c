// Simulated runs as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open: JSON trace
// events, a process for each run and a thread for each node. One thread at a time.
//
// Phases are complete events; a message is an asynchronous event from its sending to its delivery,
// and an arrow between the two nodes; faults and what the scenario does are instants. The file does
// not grow with the run: each run has its share of kMostEvents, and what comes later is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sotto/study/simulation/simulated_run.h>

namespace sotto::cli {

class TraceFile final : public study::SimulationWatcher {
 public:
  static constexpr std::size_t kMostEvents = 400'000;  ///< most events of all runs; about 50 MB

  /// Takes what happens from `from` on, of `runs` runs.
  TraceFile(SimTime from, std::size_t runs);

  void begin_run(const std::string& name) override;
  void add(const study::Stretch& stretch) override;
  void add(const TraceEntry& entry) override;
  void end_run(SimTime end, const std::vector<study::ScenarioMark>& marks,
               const std::vector<study::SimulatedFault>& faults) override;

  std::size_t most_of_a_run() const { return most_; }
  /// Events that had no place, of all runs.
  std::uint64_t left_out() const;
  std::string text() const;

 private:
  struct Run {
    std::string name;
    std::size_t events = 0;
    std::uint64_t left_out = 0;
    SimTime complete_until = kNever;  ///< from when on events were left out
  };
  /// A message under way; 0: one that was left out.
  using Flights = std::deque<std::uint64_t>;

  /// Whether there is room for so many events at `time`; counts them.
  bool take(SimTime time, std::size_t events);
  void name_thread(Rank node);
  void send(const TraceEntry& entry);
  void deliver(const TraceEntry& entry);
  /// Appends an event's fields, which begin after those that all have.
  void write(const char* phase, Rank node, SimTime at, const std::string& fields);

  SimTime from_;
  std::size_t most_;  ///< most events of one run
  std::vector<Run> runs_;
  std::vector<bool> named_;  ///< nodes of the run that have a thread
  std::map<std::pair<Rank, Rank>, Flights> flights_;
  std::uint64_t messages_ = 0;
  std::string events_;
};

}  // namespace sotto::cli
