// Base classes of the algorithms that are built around a LocalNode, and of those with one Mailbox:
// accessors, and defaults that fit most of them.
//
// Building blocks of the algorithms, not for users.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/exchange/median_clip.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/local_node.h>

namespace sotto {

/// An algorithm with the model and the rounds of a LocalNode.
class NodeAlgorithm : public Algorithm {
 public:
  std::string_view name() const override { return node_.name(); }
  std::span<const float> parameters() const override { return node_.x(); }
  Round round() const override { return node_.round(); }
  void begin_round() override { node_.begin_round(); }
  void save(ByteBuffer& out) const override { node_.save(out); }
  Status load(ByteReader& in) override { return node_.load(in); }

 protected:
  /// A node with the algorithm's facts, this run's setup and a step rule for `stepped`, as
  /// LocalNode has it; Error for a setup that LocalNode refuses.
  NodeAlgorithm(const AlgorithmInfo& info, AlgorithmSetup setup,
                const std::optional<ParameterLayout>& stepped = {})
      : node_(info, std::move(setup), stepped) {}

  LocalNode node_;
};

/// An algorithm with the exchanges of one mailbox, which a round waits for.
class MailAlgorithm : public NodeAlgorithm {
 public:
  Peers peers() const override { return graph_peers(node_, mail_); }
  bool parameters_ready() const override { return !mail_.open(); }
  bool accepts_gradient() const override { return node_.in_round() && !mail_.open(); }
  bool idle() const override { return !node_.in_round() && !mail_.open(); }
  Result<bool> next_exchange(Exchange& out) override { return mail_.next_exchange(out); }
  AlgorithmCounters counters() const override {
    return {.saturated = node_.encoder().saturated(), .bad_frames = mail_.bad_frames()};
  }

 protected:
  /// Makes the mailbox of a node, for the peers that it exchanges frames with.
  using MakeMailbox = Mailbox (*)(const LocalNode& node);

  /// A node with the mailbox that `make` makes, by default for the edges of its graph.
  MailAlgorithm(const AlgorithmInfo& info, AlgorithmSetup setup, MakeMailbox make = graph_mailbox)
      : NodeAlgorithm(info, std::move(setup)), mail_(make(node_)) {}

  Mailbox mail_;
};

/// A MailAlgorithm of which each node sends one message a round, the same to all others.
class AllToAllAlgorithm : public MailAlgorithm {
 public:
  Peers peers() const override { return peers_along(others_, mail_); }

 protected:
  /// A node with a mailbox for all other nodes.
  AllToAllAlgorithm(const AlgorithmInfo& info, AlgorithmSetup setup)
      : MailAlgorithm(info, std::move(setup), mailbox_to_all), others_(all_others(node_)) {}

  /// Sends the message that was encoded into the mailbox's outgoing(), of so many bytes.
  void post_to_all(std::size_t bytes) {
    mail_.post({.tag = {.round = node_.round(), .phase = 0, .bucket = node_.bucket()},
                .compressor = node_.compressor().wire_id(),
                .to = others_,
                .from = others_,
                .elements_out = node_.dimension(),
                .elements_in = node_.dimension()},
               bytes);
  }

  /// y ← y + scale × C, the message that came from node `from`, or the own one that was posted. A
  /// fault names the node to blame.
  Status add_message(Rank from, float scale, std::span<float> y) {
    if (from == node_.rank()) {
      return node_.encoder().decode_own(mail_.sent(), scale, y);
    }
    const auto edge = static_cast<std::size_t>(from < node_.rank() ? from : from - 1);
    const Status decoded = node_.compressor().decode_add(mail_.payload(edge), scale, y);
    return decoded.ok() ? decoded : mail_.refuse(edge, decoded);
  }

  /// Has `clip` know the lengths of all nodes' messages; `room`, of the model's dimension, is
  /// spoilt.
  Status measure_lengths(MedianClip& clip, std::span<float> room) {
    for (Rank from = 0; from < node_.nodes(); ++from) {
      node_.ops().fill(0, room);
      if (Status status = add_message(from, 1, room); !status.ok()) {
        return status;
      }
      clip.measure(from, room);
    }
    clip.settle();
    return {};
  }

  /// y ← y + the mean of all nodes' messages, summed up by rank; each counts as `clip` says, if it
  /// is not null.
  Status add_mean(std::span<float> y, const MedianClip* clip = nullptr) {
    const float share = 1.0F / static_cast<float>(node_.nodes());
    for (Rank from = 0; from < node_.nodes(); ++from) {
      const float scale = clip == nullptr ? share : share * clip->factor(from);
      if (Status status = add_message(from, scale, y); !status.ok()) {
        return status;
      }
    }
    return {};
  }

 private:
  std::vector<Edge> others_;  // all nodes but this one
};

/// A MailAlgorithm that needs of a gradient only the step rule's direction.
class DirectionAlgorithm : public MailAlgorithm {
 public:
  Status take_gradient(std::span<const float> gradient) override {
    check(accepts_gradient(), "a round takes one gradient, after the exchanges that it waits for");
    const auto d = node_.stepper().direction_in(gradient, direction_room());
    return d ? take(*d) : d.status();
  }
  Status take_direction(const Direction& d) override {
    check(accepts_gradient(), "a round takes one direction, after the exchanges that it waits for");
    return take(d);
  }

 protected:
  using MailAlgorithm::MailAlgorithm;

  /// The round, from d_i on.
  virtual Status take(const Direction& d) = 0;
  /// The room to which d_i may be written; take may write over it once it has read d.
  virtual std::span<float> direction_room() = 0;
};

}  // namespace sotto
