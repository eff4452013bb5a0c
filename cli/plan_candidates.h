// The runs that the planner considers: algorithms × compressors × graphs. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/base/ids.h>

#include "plan_codec.h"
#include "scenario.h"

namespace sotto::cli {

/// What a user restricts the search to; empty: the planner's own choice.
struct CandidateLists {
  std::vector<std::string> algorithms;
  std::vector<std::string> compressors;
  std::vector<std::string> topologies;

  bool empty() const { return algorithms.empty() && compressors.empty() && topologies.empty(); }
};

/// A run, and what the model says of it.
struct Candidate {
  std::string words;
  std::string method;  ///< algorithm and compressor: the same for all graphs
  bool compressed = false;
  Round rounds = 0;  ///< that are looked at; fewer than the run has where none takes gradients
  double seconds_per_round = 0;
  double bytes_per_round = 0;  ///< sent by a node
  double spectral_gap = 0;     ///< 1 for algorithms that use no graph
  CodecSpeed codec;
};

struct Refusal {
  std::string words;
  std::string why;
};

/// The words of all candidates, full-precision all-reduce first, then the scenario's own runs
/// (unless lists restrict the search), each once. Runs that freeze a variance do so after 15 % of
/// `rounds`. Throws Error for a name that is none.
std::vector<std::string> candidate_words(const CandidateLists& lists, const Scenario& scenario,
                                         Round rounds);

/// Plans a run and asks the model. Throws Error where the gate refuses it.
Candidate screen(const Scenario& scenario, const std::string& words, CodecMeter& codec);

/// The order in which candidates are worth looking at: each method with its quickest graph, the
/// quickest method first; then with its second graph, and so on. Of graphs within 5 % of the
/// quickest the one that mixes best comes first.
std::vector<Candidate> in_order_of_promise(std::vector<Candidate> candidates);

}  // namespace sotto::cli
