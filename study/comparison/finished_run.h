// A run that finished, in the figures by which runs are set beside each other, whether it was
// trained or simulated. Plain values; json/finished_run.h makes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/base/json.h>
#include <sotto/study/scenario/costs.h>
#include <sotto/trainers/result.h>

namespace sotto::study {

struct FinishedRun {
  std::string task;
  std::string model;
  std::string transport = {};  ///< empty for a simulation: nothing is carried
  int nodes = 0;
  std::string history_of = "averaged model";  ///< whose models the history is of
  std::vector<HistoryPoint> history = {};     ///< times are virtual for a simulation
  std::optional<HistoryPoint> final = {};     ///< none before the first evaluation
  double bytes_per_node = 0;                  ///< bytes that a node sent, mean over nodes
  /// Seconds in training, mean over nodes; of a simulation virtual ones, until the last node ended.
  double seconds = 0;
  std::optional<double> time_to_target_s = {};  ///< none without a target, or for trained runs
  std::optional<double> bytes_to_target = {};   ///< bytes sent until time_to_target_s
  std::optional<Bill> bill = {};                ///< none where nothing has a cost
  std::vector<Bill> bills = {};  ///< cost up to each point of the history; empty without costs
  Json json = {};                ///< the whole result, as the command itself has it
};

}  // namespace sotto::study
