#include <sotto/optim/robust/byzantine_node.h>

#include <algorithm>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/optim/algorithms/robust_gossip.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

std::vector<std::size_t> parcel_sizes(const LocalNode& node) {
  std::size_t most = 1;
  for (Round round = 0; round < node.topology().period(); ++round) {
    most = std::max(most, node.topology().out_edges(node.rank(), round).size());
  }
  return std::vector<std::size_t>(most, node.compressor().max_bytes(node.dimension()));
}

Mailbox lying_mailbox(const LocalNode& node) {
  return {node, max_in_degree(node), parcel_sizes(node)};
}

}  // namespace

ByzantineNode::ByzantineNode(AlgorithmSetup setup)
    : MailAlgorithm(RobustGossip::kInfo, std::move(setup), lying_mailbox),
      adversary_(node_.setup().adversary),
      half_(node_.dimension()),
      message_(node_.dimension()),
      mixed_(node_.dimension()),
      heard_(node_.topology().in_peers(node_.rank())),
      memory_(heard_.size(), std::vector<float>(node_.dimension())),
      remembered_(heard_.size()) {
  witnessed_.reserve(static_cast<std::size_t>(node_.nodes()));
  parcels_.reserve(parcel_sizes(node_).size());
}

std::span<const float> ByzantineNode::known(Rank rank) const {
  if (adversary_->posted) {
    return adversary_->posted(rank);
  }
  const auto at = std::lower_bound(heard_.begin(), heard_.end(), rank);
  const auto index = static_cast<std::size_t>(at - heard_.begin());
  const bool have = at != heard_.end() && *at == rank && remembered_[index];
  return have ? std::span<const float>(memory_[index]) : std::span<const float>{};
}

void ByzantineNode::lie_to(Rank victim) {
  const Attack& attack = adversary_->attack;
  const Ops& ops = node_.ops();
  ops.copy(half_, message_);
  if (attack.kind == Attack::Kind::sign_flip) {
    ops.scale(-1, message_);
  }
  if (attack.kind == Attack::Kind::noise) {
    RandomStream stream({.seed = node_.seed(),
                         .rank = node_.rank(),
                         .round = node_.round(),
                         .purpose = Purpose::attack,
                         .bucket = static_cast<std::uint32_t>(victim)});
    for (float& value : message_) {
      value += static_cast<float>(attack.strength * stream.normal());
    }
  }
  if (!attack.omniscient() || adversary_->includes(victim)) {
    return;
  }
  const auto model = known(victim);
  if (model.empty()) {
    return;  // nothing is known before the first round
  }
  double liars = 0;
  witnessed_.clear();
  for (const Edge& edge : node_.topology().in_edges(victim, node_.round())) {
    if (adversary_->includes(edge.peer)) {
      liars += double{edge.weight};
    } else if (const auto other = known(edge.peer); !other.empty()) {
      witnessed_.push_back({other, double{edge.weight}});
    }
  }
  const auto step = adversary_->step ? adversary_->step(victim) : std::span<const float>{};
  craft(attack, model, step, witnessed_, liars, message_);
}

Status ByzantineNode::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "a Byzantine node takes one gradient a round");
  if (Status status = node_.stepper().move(node_.x(), gradient, half_); !status.ok()) {
    return status;
  }
  parcels_.clear();
  for (const Edge& edge : node_.out_edges()) {
    lie_to(edge.peer);
    const auto payload = node_.encoder().encode(message_, mail_.outgoing(parcels_.size()));
    parcels_.push_back({.elements = node_.dimension(), .payload_bytes = payload.size()});
  }
  mail_.post_each(graph_plan(node_), parcels_);
  return {};
}

Status ByzantineNode::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  const Ops& ops = node_.ops();
  ops.copy(half_, mixed_);
  for (std::size_t edge = 0; edge < mail_.from().size(); ++edge) {
    ops.fill(0, message_);
    const auto [peer, weight] = mail_.from()[edge];
    if (!node_.compressor().decode_add(mail_.payload(edge), 1, message_)) {
      continue;  // from another attacker
    }
    if (!adversary_->includes(peer)) {
      const auto at = std::lower_bound(heard_.begin(), heard_.end(), peer) - heard_.begin();
      ops.copy(message_, memory_[static_cast<std::size_t>(at)]);
      remembered_[static_cast<std::size_t>(at)] = true;
    }
    ops.subtract(message_, half_, message_);
    ops.axpy(weight, message_, mixed_);
  }
  if (ops.count_non_finite(mixed_).count == 0) {
    ops.copy(mixed_, node_.x());
  }
  mail_.close();
  node_.finish_round();
  return {};
}

AlgorithmCounters ByzantineNode::counters() const { return {.bad_frames = mail_.bad_frames()}; }

void ByzantineNode::save(ByteBuffer& out) const {
  node_.save(out);
  out.write_string(adversary_->attack.spec());
  for (std::size_t i = 0; i < heard_.size(); ++i) {
    out.write(static_cast<std::uint8_t>(remembered_[i] ? 1 : 0));
    write_floats(memory_[i], out);
  }
}

Status ByzantineNode::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (Status status = expect_name(in, "attack", adversary_->attack.spec()); !status.ok()) {
    return status;
  }
  for (std::size_t i = 0; i < heard_.size(); ++i) {
    remembered_[i] = in.read<std::uint8_t>() != 0;
    if (Status status = read_floats(in, "memory", memory_[i]); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace sotto
