// Experts of a task's model that lie at different nodes: node r of p has experts r E/p … (r + 1)
// E/p − 1 of each layer, and all else of the model is everybody's. Positions of a text go to the
// experts that their gate chooses, by an ExpertExchange for each layer
// (groups/programs/expert_exchange.h), within each step.
//
// A step of L layers of experts has 4 L exchanges, one after the other: rows go to experts and come
// back, layer by layer, and gradients take the same ways, the last layer first. Without compression
// and dropped rows its gradients are those of the model with all experts at all nodes, averaged,
// but for rounding.
//
// Rows are activations: **whoever gets them learns of the data**; privacy/ does not cover them.
//
// Thread safety: pure functions; what they make belongs to one node each.
#pragma once

#include <memory>
#include <string>

#include <sotto/trainers/placed_model.h>
#include <sotto/trainers/tasks/task.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto {

/// How rows go to experts; the same at all nodes.
struct ExpertsAtNodes {
  /// Compressor of rows, of what experts make of them, and of gradients at both: `none`, or an
  /// unbiased one of 8 bits or more.
  std::string compressor = "quant:8";
  /// Capacity factor f: a node may send ⌈f T / E⌉ of its T rows to an expert, and what does not fit
  /// is dropped; 0: none is.
  double capacity = 0;
};

/// The model of these tasks with its experts at their nodes. Throws Error (field "experts_at") for
/// a model without experts, and data without positions, (field "model") for a number of experts
/// that the nodes do not divide, (field "batch") for more rows than an expert can be sent, (field
/// "expert_compressor") for a compressor that rows or their gradients cannot take, and (field
/// "expert_capacity") for a factor below 0.
std::shared_ptr<const PlacedModel> place_experts(std::shared_ptr<const TaskFactory> tasks,
                                                 const ExpertsAtNodes& how);

/// `task`, whose gradients are 0: a PlacedModel's program takes them itself.
std::unique_ptr<Task> without_gradients(std::unique_ptr<Task> task);

}  // namespace sotto
