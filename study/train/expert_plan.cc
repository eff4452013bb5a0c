#include <sotto/study/train/expert_plan.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/train/auto_compressor.h>

namespace sotto::study {
namespace {

/// Settings that say how rows go to experts do nothing where none goes.
void require_used(const TrainOptions& o) {
  const std::string why = "does nothing where all nodes have all experts; give it with ";
  if (!o.expert_compressor.empty()) {
    refuse("expert_compressor", o.expert_compressor, why + mention("experts_at", "nodes"));
  }
  if (o.expert_capacity) {
    refuse("expert_capacity", fmt::format("{}", *o.expert_capacity),
           why + mention("experts_at", "nodes"));
  }
}

/// What a run as a whole has, and an optimizer knows nothing of.
void check_run(const TrainOptions& o) {
  if (!o.deal) {
    refuse("experts_at", o.experts_at,
           "rows go where gates send them, which a scenario of timing only does not know; let it "
           "train");
  }
  if (!o.join.empty() && o.join != "none") {
    refuse("join", o.join,
           "a node that is out of data still has experts that others need; leave it out, or " +
               mention("experts_at", "nodes"));
  }
  if (!o.batch_share.empty()) {
    refuse("batch_share", o.batch_share,
           "experts would have to know how much each row counts; leave it out, or " +
               mention("experts_at", "nodes"));
  }
  if (compressor_budget(o.compressor)) {
    refuse("compressor", o.compressor,
           "it is chosen by gradients of one node, which with " + mention("experts_at", "nodes") +
               " has no whole model; name a compressor");
  }
}

/// What a run with a graph in parts cannot have.
void check_graph_run(const TrainOptions& o) {
  if (!o.deal) {
    refuse("task", o.task,
           "rows of a graph change what is sent of it, which a scenario of timing only does not "
           "know; let it train");
  }
  if (compressor_budget(o.compressor)) {
    refuse("compressor", o.compressor,
           "it is chosen by gradients of one node, which with " + mention("task", o.task) +
               " has none of its own; name a compressor");
  }
}

}  // namespace

ExpertsAtNodes expert_settings(const TrainOptions& o) {
  ExpertsAtNodes how;
  if (!o.expert_compressor.empty()) {
    how.compressor = o.expert_compressor;
  }
  how.capacity = o.expert_capacity.value_or(how.capacity);
  return how;
}

std::shared_ptr<const PlacedModel> placed_model(const TrainOptions& o,
                                                std::shared_ptr<const TaskFactory> tasks) {
  const bool everywhere = o.experts_at.empty() || o.experts_at == "everywhere";
  if (const auto& graph = tasks->data().graph; graph && everywhere) {
    require_used(o);
    check_graph_run(o);
    return place_graph(graph, tasks->graph_split(), tasks->options().nodes);
  }
  if (everywhere) {
    require_used(o);
    return nullptr;
  }
  if (o.experts_at != "nodes") {
    refuse("experts_at", o.experts_at, "it is everywhere or nodes");
  }
  if (o.expert_capacity && !(*o.expert_capacity > 0)) {
    refuse("expert_capacity", fmt::format("{}", *o.expert_capacity),
           "take a factor above 0, usually 1 to 2.5; leave it out to drop nothing");
  }
  check_run(o);
  return place_experts(std::move(tasks), expert_settings(o));
}

}  // namespace sotto::study
