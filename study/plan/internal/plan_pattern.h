// What the nodes of a job send to each other in a round, found by listening to the very algorithm
// objects for a few rounds. One thread at a time.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/sim/lockstep.h>
#include <sotto/study/plan/plan_model.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

/// The exchanges of the first `rounds` rounds, with these gradients; `grouped`: the nodes are in
/// groups. Throws Error for algorithms that do not get through them.
std::vector<PlannedRound> overhear(std::vector<std::unique_ptr<Algorithm>> algorithms, Round rounds,
                                   const GradientFunction& gradient, bool grouped = false);

/// The job of a planned run on a scenario's nodes, without its local steps (with_local_steps); with
/// stand-ins where no gradients are taken.
PlannedJob planned_job(const Scenario& scenario, const TrainPlan& plan);

/// All (from, to) that the job's frames take, sorted.
std::vector<std::pair<Rank, Rank>> pairs_of(const PlannedJob& job);

}  // namespace sotto::study
