// A Byzantine node among nodes that run `robust`: the same frames on the wire, and in them what an
// attack makes of what the attackers know. A tool for tests (attack.h).
//
// Towards its own model the node is an honest one that mixes plainly, so that a node which flips
// labels or signs has a trained model to lie with.
//
// Thread safety and ownership: as Algorithm; the oracle's models must stay while a round begins.
#pragma once

#include <memory>
#include <vector>

#include <sotto/optim/node_algorithm.h>
#include <sotto/optim/robust/attack.h>

namespace sotto {

class ByzantineNode final : public MailAlgorithm {
 public:
  /// Use make_algorithm with setup.adversary, which says that setup.rank is one.
  explicit ByzantineNode(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  /// The model of an honest node, as far as the attackers know it; empty when they do not.
  std::span<const float> known(Rank rank) const;
  /// Writes the message for `victim` to message_.
  void lie_to(Rank victim);

  std::shared_ptr<const Adversary> adversary_;
  std::vector<float> half_;  // the own model after its step
  std::vector<float> message_;
  std::vector<float> mixed_;
  std::vector<Rank> heard_;                 // owners of the models in memory_
  std::vector<std::vector<float>> memory_;  // their last messages; empty before the first
  std::vector<bool> remembered_;
  std::vector<Witnessed> witnessed_;
  std::vector<Parcel> parcels_;
};

}  // namespace sotto
