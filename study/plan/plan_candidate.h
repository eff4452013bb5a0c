// A run that the planner considers, and what the model says of it. Plain values.
#pragma once

#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/study/plan/plan_codec.h>
#include <sotto/study/train/run_spec.h>

namespace sotto::study {

/// The algorithm of full-precision all-reduce; its run without further settings is the baseline.
inline constexpr const char* kBaseline = "allreduce";

/// Local steps, delayed gradients and batches by speed are worth a look where they make a round
/// shorter by this factor, or may do so.
inline constexpr double kShorter = 0.9;

/// A run, and what the model says of it.
struct Candidate {
  RunSpec run;
  std::string algorithm;
  std::string compressor;  ///< the compressor's full specification
  std::string method;      ///< algorithm and compressor, without the graph
  std::string graph;       ///< the graph's specification; "" for algorithms that use none
  std::string step_rule =
      {};  ///< the run's settings that decide how nodes step; "" where it has none
  std::string outer_rule = {};  ///< the run's settings of its outer rule; "" where it has none
  Round interval = 1;           ///< rounds from one exchange to the next
  bool compressed = false;
  bool own = false;  ///< the run is one of the scenario's own
  /// Rounds that the model predicts. Fewer than the run has in scenarios of timing only.
  Round rounds = 0;
  double predicted_seconds_per_round = 0;  ///< virtual seconds, predicted by plan_model.h
  /// A round may take any time longer: frames cross links whose queues can overflow, of which the
  /// model knows nothing.
  bool may_take_longer = false;
  double bytes_per_round = 0;  ///< bytes that a node sends a round
  /// What a step computes besides its gradient (step_work.h), as a part of the gradient's time.
  double step_work = 0;
  /// Bytes that a node sends a round to members of its own group; none: nodes are in no groups.
  std::optional<double> bytes_per_round_within = {};
  double spectral_gap = 0;  ///< spectral gap of the graph; 1 for algorithms that use none
  CodecSpeed codec;

  bool baseline() const { return run.name == kBaseline; }
  /// Whether its rounds are, or may be, so much shorter than those of `other` that it is worth a
  /// look.
  bool may_be_shorter_than(const Candidate& other) const {
    return other.may_take_longer ||
           predicted_seconds_per_round < kShorter * other.predicted_seconds_per_round;
  }
};

/// A run that was considered and cannot be, or an algorithm that is not tried.
struct Refusal {
  std::string run;  ///< the run's or the algorithm's name, or settings that no run is tried with
  std::string why;
};

}  // namespace sotto::study
