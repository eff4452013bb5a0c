// A layer of experts of a torch model whose experts lie at different processes: rows go to the
// experts that a gate chooses, what these make of them comes back, and gradients take the same ways
// within torch's own backward pass.
//
//   sotto::torch::ExpertLink link({.layer = {.experts = 8, .width = 64, .tokens = 256}});
//   std::vector<torch::nn::Linear> experts;  // link.own_experts() of them, the first of which has
//                                            // the number link.first_expert()
//   auto y = link.forward(x, gate->forward(x), [&](std::size_t e, const torch::Tensor& rows) {
//     return experts[e - link.first_expert()]->forward(rows);
//   });
//   loss(y).backward();
//
// `forward` is an autograd function. Gates, capacity, order of rows and memory are those of
// ExpertExchange (groups/programs/expert_exchange.h); which tokens are dropped depends on the
// scores alone. Without compression, what comes is to the bit what one process with all experts
// makes of the same tokens, where these are dealt to the nodes in contiguous runs.
//
// All nodes make the same calls in the same order, forward and backward, each with its own tokens.
// Where graphs are recorded, each forward has its backward at all nodes or at none; under
// torch::NoGradGuard, at all nodes, there is none. Several layers may be under way, each with its
// number, which is free again after its backward pass.
// Gradients of an expert are sums over the tokens of all nodes: where each node's loss is a mean
// over its own tokens, divide the learning rate or the gradients of the experts by the number of
// nodes. Each node steps its own experts; what all nodes have, such as the gate, is a matter of a
// DistributedOptimizer, which needs a store of its own.
// Rows are activations: **whoever gets them learns of the data**; privacy/ does not cover them.
//
// Thread safety: one thread at a time, autograd's among them. Ownership: tokens and gradients are
// copied; the link, and what the function of the experts captures, must outlive the graphs.
// Errors: wrong settings and misuse throw sotto::Error; a fault of the run (a lost peer, values
// that are not finite, a deadline) throws RunFault, ends the link, and is thrown again by later
// calls. What the experts throw comes out of `forward` or `backward` here; the link ends, and the
// other nodes are told that this one is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <torch/types.h>

#include <sotto/groups/programs/expert_exchange.h>
#include <sotto/trainers/torch/distributed_optimizer.h>
#include <sotto/trainers/torch/link_place.h>

namespace sotto::torch {

/// Layers of experts, and how their nodes meet; layers and seed the same at all.
struct ExpertLinkOptions {
  /// What the layers are like. `experts` is a multiple of the nodes, `tokens` the most rows that a
  /// node gives to a layer.
  ExpertOptions layer = {};
  /// Layers of the model, or batches of one, that may be under way at a time.
  int layers = 1;
  LinkPlace place = {};    ///< the node, and how all meet
  std::uint64_t seed = 0;  ///< seed of random rounding
};

/// What expert `expert`, one of this node's, makes of its rows: [n, width], float32 on the CPU, n
/// may be 0. The result has as many rows of the same width.
using ExpertFunction =
    std::function<::torch::Tensor(std::size_t expert, const ::torch::Tensor& rows)>;

class ExpertLink {
 public:
  /// Throws Error as ExpertExchange, (field "layers") for fewer than 1, (fields "rank" and "nodes")
  /// for a node that is none, and for a transport or store that is refused. The nodes meet in the
  /// first forward.
  explicit ExpertLink(ExpertLinkOptions options);
  /// Leaves; what this node has sent is still delivered.
  ~ExpertLink();
  ExpertLink(const ExpertLink&) = delete;
  ExpertLink& operator=(const ExpertLink&) = delete;

  /// The first expert of this node.
  std::size_t first_expert() const;
  /// Experts of this node.
  std::size_t own_experts() const;
  /// Sends the rows of x, [n, width], to the experts that the gate chooses by `scores`, [n,
  /// experts], runs this node's experts on the rows that come, in the order of their numbers, and
  /// gives what all experts make of x, weighted by the gate: [n, width], of the type and device of
  /// x. The backward pass of the result gives the gradients of x, the scores, and the parameters of
  /// the experts. Throws Error (fields "x", "scores" and "experts") for shapes that do not fit, and
  /// (field "layer") for a number that is none.
  ::torch::Tensor forward(const ::torch::Tensor& x, const ::torch::Tensor& scores,
                          const ExpertFunction& experts, int layer = 0);

  /// A layer's choices, loads and dropped tokens; throws Error (field "layer").
  const ExpertExchange& exchange(int layer = 0) const;
  /// Bytes of frames that this node has sent.
  std::uint64_t bytes_sent() const;

 private:
  friend struct ExpertVisit;
  friend struct ExpertRows;
  struct Run;

  std::unique_ptr<Run> run_;
};

}  // namespace sotto::torch
