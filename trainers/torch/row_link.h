// A boundary between two processes that have one torch model together: rows of activations go from
// one to the other, and their gradients come back within torch's own backward pass.
//
//   sotto::torch::RowLink link({.link = {.width = 64, .rows = 32, .keys = 10'000}});
//   at node 0:  auto sent = link.send(lower->forward(x), keys);      sent.backward();
//   at node 1:  auto rows = link.receive(keys);    loss(upper->forward(rows), y).backward();
//   both:       optimizer.step();
//
// Each is an autograd function: `send` is a scalar whose gradient is that of the rows at the other
// end, `receive` a tensor whose gradient goes there. Rows that come again under their keys go in
// few bits, as a KeyedLink has it (groups/keyed_link.h), with all that is said there: both ends
// give the same keys in the same order.
//
// Both ends make the same calls in the same order, forward and backward: each send has its receive,
// and where the graph is recorded, each backward pass its counterpart. Under torch::NoGradGuard,
// at both ends, rows go one way only. Several batches may be under way, each with its number, which
// is free again after its backward pass.
// Rows are activations: **whoever gets them learns of the data**; privacy/ does not cover them.
//
// Thread safety: one thread at a time, autograd's among them. Ownership: rows and gradients are
// copied; the link must outlive the graphs that its tensors are in.
// Errors: wrong settings and misuse throw sotto::Error; a fault of the run (a lost peer, keys that
// differ, a deadline) throws RunFault, ends the link, and is thrown again by later calls.
#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include <sotto/groups/keyed_link.h>
#include <sotto/trainers/torch/distributed_optimizer.h>
#include <sotto/trainers/torch/link_place.h>

namespace sotto::torch {

/// A link, and how its two nodes meet; `link` and seed the same at both.
struct RowLinkOptions {
  /// What is carried; `from` and `to` are the two nodes, 0 and 1. `batches` is how many may be
  /// under way at a time.
  KeyedLinkOptions link = {};
  LinkPlace place = {};    ///< the node, 0 or 1, and how the two meet; `nodes` is 2 if it is set
  std::uint64_t seed = 0;  ///< seed of random rounding
};

class RowLink {
 public:
  /// Throws Error as KeyedLink, (fields "rank" and "nodes") for a node that is neither 0 nor 1, and
  /// for a transport or store that is refused. The nodes meet in the first send or receive.
  explicit RowLink(RowLinkOptions options);
  /// Leaves; what this node has sent is still delivered.
  ~RowLink();
  RowLink(const RowLink&) = delete;
  RowLink& operator=(const RowLink&) = delete;

  /// This node is the one that sends rows.
  bool sends() const;
  /// Sends rows, [n, width] with n keys (int64, one dimension, each at most once in a batch). Gives
  /// a scalar 0: its backward pass waits for the gradients of the other end and passes them on to
  /// the rows. Rows of another type or device are sent as float32 of the CPU. Throws Error (fields
  /// "rows" and "keys") for shapes that do not fit and for rows that need no gradient while graphs
  /// are recorded, (field "batch") for a number that is none, and (field "rank") at the other end.
  ::torch::Tensor send(const ::torch::Tensor& rows, const ::torch::Tensor& keys, int batch = 0);
  /// Waits for the rows with these keys: [n, width], float32 on the CPU. Their backward pass sends
  /// their gradient back. Throws Error as send.
  ::torch::Tensor receive(const ::torch::Tensor& keys, int batch = 0);

  /// The link's counts and memory. Its `save`, `load` and `forget` are to be called at both ends
  /// between the same two exchanges.
  KeyedLink& link() const;
  /// Bytes of frames that this node has sent.
  std::uint64_t bytes_sent() const;

 private:
  friend struct RowVisit;
  friend struct SendRows;
  friend struct ReceiveRows;
  struct Run;
  /// Throws Error for a call of the other end's, or a batch that is none.
  void require_call(bool sending, int batch) const;

  std::unique_ptr<Run> run_;
};

}  // namespace sotto::torch
