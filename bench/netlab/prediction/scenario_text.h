// Scenarios that are made here, in the words of their files. One thread at a time.
#pragma once

#include <string>

#include <sotto/study/scenario/scenario.h>

namespace sotto::netlab {

/// Reads a scenario from text. Throws Error as read_scenario does.
study::Scenario scenario_from(const std::string& text);

/// Figures of a made scenario: every host has a connection of its own, the same for all.
struct MadeScenario {
  std::string title;
  std::string words;
  int nodes = 2;
  double mbit_per_s = 0;  ///< a host's bandwidth up and down; 0: without a limit
  double latency_ms = 0;
  double loss = 0;  ///< the share of packets that is lost, both ways
  std::string gradient = "20 ms";
  std::string model = "mlp:32";
  int batch = 8;
  std::uint64_t rounds = 1;
  std::uint64_t seed = 0;

  std::string text() const;
};

}  // namespace sotto::netlab
