// Tasks by name: `mnist:DIR` → data, and data → one Task for each node.
//
//   auto data = load_task("digits");                       // once a process
//   TaskFactory tasks(data, {.nodes = 8, .batch = 32});    // once a job
//   std::unique_ptr<Task> task = tasks.make(rank);         // once a local node
//
// Thread safety: TaskData and TaskFactory are immutable and may be shared; a Task belongs to one
// node. Ownership: a factory and the tasks share the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/data/shared_scaling.h>
#include <sotto/trainers/tasks/graph_task.h>
#include <sotto/trainers/tasks/model.h>
#include <sotto/trainers/tasks/quadratic.h>
#include <sotto/trainers/tasks/supervised_task.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// One kind of task, as `sotto list` shows it.
struct TaskInfo {
  std::string_view name;      ///< the task's name, "digits"
  std::string_view synopsis;  ///< form of its specification, "digits[,train=N][,test=N][,seed=S]"
  std::string_view summary;   ///< one sentence
  std::string_view default_model;  ///< a model's specification; empty where the task is the model
};

/// All kinds, in a fixed order.
std::span<const TaskInfo> tasks();

/// The data of a task, shared by the nodes of one process.
struct TaskData {
  std::string spec;           ///< the specification of the task
  std::string default_model;  ///< the model's specification; empty where the task is the model
  /// scaling_digest of the scaling of columns; empty: their own means and deviations.
  std::string scaling{};
  /// Exactly one of the three is not null.
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const QuadraticProblem> quadratic;
  /// A graph in parts, whose gradients the nodes make together (place_graph).
  std::shared_ptr<const GraphProblem> graph;

  /// Whether numbers are to be predicted, of which R² says how well; else classes, if anything.
  bool regression() const;
  /// The number of nodes that the job must have, where the data say so.
  std::optional<int> nodes() const;
};

/// Reads or generates the data of the task that `spec` names: `NAME[:PATH][,parameter=value…]`.
/// Throws Error for an unknown name or parameter, a file that cannot be read, and a damaged file
/// (with file, place and what was expected there). `scaling` is for tables (`csv:`): Error (field
/// `scaling`) for other tasks, and where its columns are not those of the table.
std::shared_ptr<const TaskData> load_task(std::string_view spec,
                                          const SharedScaling* scaling = nullptr);

/// Throws Error (field "task") for a task whose gradients nodes make together in each round, such
/// as a graph in parts, where `who` trains with gradients of its own: "a site".
void require_own_gradients(const TaskData& data, std::string_view who);

/// The inputs and outputs of a model of these data.
ModelInput input_of(const Dataset& data);

/// Gradients that no example can move by more than clip_norm / batch (clipped_task.h).
struct ExampleClipping {
  double clip_norm = 1;
  /// Draws the samples from this seed, which makes them public: for tests and simulations.
  std::optional<std::uint64_t> test_seed{};
};

/// The settings of a job that a task depends on; equal on all nodes.
struct TaskOptions {
  std::string model{};            ///< specification for make_model; empty: the task's default
  std::string partition = "iid";  ///< specification for parse_partition
  std::size_t batch = 32;         ///< examples a round and node, 1 … 65,536
  /// Examples a round of each node, by rank, `batch` in the mean; empty: all take `batch`.
  std::vector<std::size_t> batches = {};
  int nodes = 1;
  std::uint64_t seed = 0;  ///< seed of the partition and of the order of examples
  /// Nodes to which no examples are dealt, sorted: the others share them all. Each of these, an
  /// attacker in a test, gets what one of the others has.
  std::vector<Rank> byzantine = {};
  bool flip_labels = false;  ///< nodes in `byzantine` train on labels c − 1 − y
  /// False: no gradients are taken, as in a simulation of timing only. Nodes get no examples, so
  /// that there may be more nodes than examples.
  bool deal = true;
  std::optional<ExampleClipping> clipping{};

  /// Examples a round of node `rank`.
  std::size_t batch_of(Rank rank) const {
    return batches.empty() ? batch : batches[static_cast<std::size_t>(rank)];
  }
  /// A node's examples as a multiple of `batch`.
  double part_of_batch(Rank rank) const {
    return batches.empty() ? 1 : static_cast<double>(batch_of(rank)) / static_cast<double>(batch);
  }
};

/// A task's data, read once, and a Task of it for each node.
class TaskFactory {
 public:
  /// Splits the data over the nodes. Throws Error for an option that does not fit.
  TaskFactory(std::shared_ptr<const TaskData> data, TaskOptions options);

  const TaskData& data() const { return *data_; }
  /// The data, for another factory.
  const std::shared_ptr<const TaskData>& shared_data() const { return data_; }
  /// The options as used: the model is filled in.
  const TaskOptions& options() const { return options_; }
  /// Training examples of each node; empty where the task has none.
  std::vector<std::size_t> examples_per_node() const;
  /// The graph in parts of a task that is one; else null.
  const std::shared_ptr<const RatingsSplit>& graph_split() const { return graph_split_; }
  /// The sampling rate with clipping: the largest probability, over all nodes, with which a node
  /// takes an example in a round, batch / examples of the node with the fewest; 1 at most.
  double sampling_rate() const;

  /// The task of node `rank`. Requires 0 ≤ rank < nodes. If no example is dealt out, its gradients
  /// are those of the first one.
  std::unique_ptr<Task> make(Rank rank) const;
  /// That task without clipping; requires data of examples.
  std::unique_ptr<SupervisedTask> make_supervised(Rank rank) const;

 private:
  std::vector<std::uint32_t> shard_of(Rank rank) const;

  std::shared_ptr<const TaskData> data_;
  TaskOptions options_;
  std::vector<std::vector<std::uint32_t>> shards_;
  std::shared_ptr<const RatingsSplit> graph_split_;
};

}  // namespace sotto
