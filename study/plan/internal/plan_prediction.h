// A proposed run as the model of the network sees it: prepared once, then predicted with several
// paces. Used by plan_screen.cc alone. One thread at a time.
#pragma once

#include <vector>

#include <sotto/base/ids.h>
#include <sotto/optim/streaming.h>
#include <sotto/sim/network/platform.h>
#include <sotto/study/plan/plan_candidate.h>
#include <sotto/study/plan/plan_codec.h>
#include <sotto/study/plan/plan_model.h>
#include <sotto/study/plan/plan_proposals.h>
#include <sotto/study/plan/planned_job.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/step_work.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

/// What a run exchanges, and how fast its nodes and links are.
struct Prediction {
  const Scenario& scenario;  ///< outlives this
  TrainPlan plan;
  Candidate described;  ///< the run, without what the model says of it
  PlannedJob job;       ///< its exchanges, without its local steps
  Platform platform;
  JobTiming timing;      ///< its nodes, without the work of their steps
  StepWork work;         ///< what they compute besides gradients
  bool streams = false;  ///< its exchange may be tried in fragments

  /// The run as proposed. Throws Error for a frame between nodes that the platform does not
  /// connect.
  Candidate as_proposed() const { return timed(described, plan.run.optimizer.streaming); }

  /// The run as proposed, then with those of `intervals` and those exchanges in fragments that may
  /// make a round shorter (Candidate::may_be_shorter_than). Throws Error as as_proposed does.
  std::vector<Candidate> paces(const std::vector<Round>& intervals) const;

  /// The candidate with its time by the model, if its exchange is cut so.
  Candidate timed(Candidate candidate, const Streaming& streaming) const;
};

/// Prepares a proposal. Throws Error for a run that its algorithm's requirements refuse.
Prediction prediction_of(const Proposal& proposal, const Scenario& scenario, CodecMeter& codec);

/// The candidate with other settings that leave its exchanges as they are.
Candidate stepping(Candidate candidate, const MoreSettings& settings);

}  // namespace sotto::study
