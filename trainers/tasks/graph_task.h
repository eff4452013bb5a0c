// A graph of ratings as a task: who trusts whom, of which each node of a run has a part of the
// people. A GraphNetwork (groups/programs/graph_network.h) learns it; each round is one pass over
// all ratings, in which the nodes send each other rows of boundary people.
//
// Nodes have the whole file, of which the network takes each one's part. **Rows tell the receiver
// of people of other nodes**; privacy/ does not cover them.
//
// An evaluation is of ratings that were held back, by rows of the whole graph without compression
// and cache: the logistic loss, in which both signs count alike, and as accuracy the area under the
// curve, AUC: the share of all pairs of a positive and a negative rating that the network puts in
// order.
//
// Thread safety: a problem is immutable and shared; a task belongs to one node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/groups/program.h>
#include <sotto/groups/programs/graph_network.h>
#include <sotto/trainers/data/ratings.h>
#include <sotto/trainers/placed_model.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// A file of ratings, and what is learnt of it.
struct GraphProblem {
  std::string spec;  ///< the task as it is written
  Ratings ratings;
  RatingsCut cut;  ///< how it is cut, but for the number of members
  GraphNetworkOptions network;
};

/// Reads what a task's specification names:
/// `graph:FILE[,hidden=N][,embedding=N][,halo=C][,gradient-halo=C][,cache=ROUNDS][,share=PERCENT]
/// [,cut=walk|random][,apart][,test=PERCENT][,seed=S]`. `halo=keyed:B` sends changes of rows in B
/// bits, 2 to 8; another value is a compressor of rows. By default both halos are quant:8, nothing
/// is left out, and 20 % are held back. Throws Error (field "task") for a value that is none, for
/// compressors that rows do not take, and as read_ratings.
std::shared_ptr<const GraphProblem> load_graph(std::string_view spec);

/// The graph in as many parts as there are nodes. Throws Error (field "nodes") for more nodes than
/// people, and (field "task") where ratings of one sign are missing in training or in the test.
std::shared_ptr<const RatingsSplit> split_graph(const GraphProblem& problem, int nodes);

/// One node's task. An epoch is a round. Its gradients are those of a PlacedModel's program alone,
/// so that loss_and_gradient must not be called.
class GraphTask final : public Task {
 public:
  /// The split is of the problem.
  GraphTask(std::shared_ptr<const GraphProblem> problem, std::shared_ptr<const RatingsSplit> split);

  const ParameterLayout& layout() const override { return layout_; }
  void initialize(std::span<float> parameters, std::uint64_t seed) const override;
  Round rounds_per_epoch() const override { return 1; }
  double loss_and_gradient(Round round, std::span<const float> parameters,
                           std::span<float> gradient) override;
  Evaluation evaluate(std::span<const float> parameters) override;

 private:
  /// A node that has the whole graph, and makes rows of it.
  void make_judge();

  std::shared_ptr<const GraphProblem> problem_;
  std::shared_ptr<const RatingsSplit> split_;
  ParameterLayout layout_;
  std::vector<float> weights_;               // of the judge
  const GraphNetwork* network_ = nullptr;    // of the judge
  std::unique_ptr<ProgramAlgorithm> judge_;  // null until the first evaluation
};

/// The network of a job of `nodes` nodes, none of whose tensors lie at one node alone.
std::shared_ptr<const PlacedModel> place_graph(const std::shared_ptr<const GraphProblem>& problem,
                                               std::shared_ptr<const RatingsSplit> split,
                                               int nodes);

}  // namespace sotto
