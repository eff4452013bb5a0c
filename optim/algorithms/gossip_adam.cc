#include <sotto/optim/algorithms/gossip_adam.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <sotto/compress/none.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/exchange/finite_watch.h>
#include <sotto/optim/frozen_adam/zero_where_zero.h>

namespace sotto {
namespace {

/// Rounds after which what one node knows has reached all: at least the diameter, found from one
/// node alone so that large graphs cost little.
Round spreading_time(const Topology& graph) {
  const auto nodes = static_cast<std::size_t>(graph.nodes());
  std::vector<bool> reached(nodes);
  std::vector<Rank> frontier = {0};
  reached[0] = true;
  Round distance = 0;
  while (true) {
    std::vector<Rank> next;
    for (const Rank node : frontier) {
      for (const Edge& edge : graph.out_edges(node, 0)) {
        if (!reached[static_cast<std::size_t>(edge.peer)]) {
          reached[static_cast<std::size_t>(edge.peer)] = true;
          next.push_back(edge.peer);
        }
      }
    }
    if (next.empty()) {
      break;
    }
    ++distance;
    frontier = std::move(next);
  }
  return std::min<Round>(2 * distance, nodes - 1);
}

Mailbox gossip_adam_mailbox(const LocalNode& node) {
  const std::size_t elements = node.dimension();
  return {node, max_in_degree(node),
          std::max(2 * make_none(node.ops())->max_bytes(elements),
                   node.compressor().max_bytes(elements) + LateGossip::max_bytes(elements))};
}

}  // namespace

GossipAdam::GossipAdam(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup), gossip_adam_mailbox),
      adam_(Adam::of(node_.step_rule())),
      exact_(make_none(node_.ops())),
      vector_bytes_(exact_->max_bytes(node_.dimension())),
      eta_(node_.hyperparameters().real("eta")),
      freeze_step_(node_.hyperparameters().count(kFreezeStep)),
      agreement_(spreading_time(node_.topology())),
      late_(agreement_),
      late_gossip_(late_),
      public_(node_),
      half_(node_.dimension()),
      mixed_model_(node_.dimension()),
      mixed_variance_(node_.dimension()) {}

ExchangePlan GossipAdam::plan() const {
  ExchangePlan plan = graph_plan(node_);
  if (!squeezing()) {
    plan.compressor = exact_->wire_id();
    plan.elements_in = plan.elements_out = 2 * node_.dimension();
  }
  return plan;
}

std::span<const std::byte> GossipAdam::model_of(std::span<const std::byte> payload) const {
  return payload.first(vector_bytes_);
}

std::span<const std::byte> GossipAdam::variance_of(std::span<const std::byte> payload) const {
  return payload.subspan(vector_bytes_);
}

void GossipAdam::begin_round() {
  node_.begin_round();
  if (squeezing()) {
    return;
  }
  const auto payload = mail_.outgoing();
  exact_->encode(node_.x(), {}, payload);
  exact_->encode(adam_.variance(), {}, payload.subspan(vector_bytes_));
  mail_.post(plan(), 2 * vector_bytes_);
}

Status GossipAdam::complete(const Exchange& exchange) {
  const auto judge = [this](std::size_t edge) {
    return squeezing() || mail_.payload(edge).size() == 2 * vector_bytes_
               ? Status()
               : Status{Fault::malformed, "its payload is not two vectors long"};
  };
  if (Status status = mail_.accept(exchange, judge); !status.ok()) {
    return status;
  }
  return squeezing() ? squeeze() : mix();
}

Status GossipAdam::mix() {
  const Ops& ops = node_.ops();
  ops.copy(node_.x(), mixed_model_);
  ops.scale(node_.self_weight(), mixed_model_);
  ops.copy(adam_.variance(), mixed_variance_);
  if (learning()) {
    ops.scale(node_.self_weight(), mixed_variance_);
  }
  for (std::size_t edge = 0; edge < mail_.from().size(); ++edge) {
    const Status decoded =
        exact_->decode_add(model_of(mail_.payload(edge)), mail_.from()[edge].weight, mixed_model_);
    if (!decoded.ok()) {
      return mail_.refuse(edge, decoded);
    }
    if (Status status = mix_variance(edge); !status.ok()) {
      return status;
    }
  }
  mail_.close();
  return {};
}

Status GossipAdam::mix_variance(std::size_t edge) {
  const Ops& ops = node_.ops();
  std::vector<float>& theirs = half_;
  ops.fill(0, theirs);
  const Status decoded = exact_->decode_add(variance_of(mail_.payload(edge)), 1, theirs);
  if (!decoded.ok()) {
    return mail_.refuse(edge, decoded);
  }
  if (ops.min_max(theirs).min < 0) {
    return mail_.refuse(edge, {Fault::malformed, "it has a negative variance"});
  }
  if (learning()) {
    ops.axpy(mail_.from()[edge].weight, theirs, mixed_variance_);
  } else {
    std::transform(theirs.begin(), theirs.end(), mixed_variance_.begin(), mixed_variance_.begin(),
                   [](float a, float b) { return std::max(a, b); });
  }
  return {};
}

Status GossipAdam::step_from(std::span<const float> from, std::span<const float> gradient) {
  const Ops& ops = node_.ops();
  adam_.clip(gradient, half_);
  if (squeezing()) {
    late_.take_gradient(half_, adam_, node_.round(), freeze_step_);
  }
  adam_.penalize(node_.x(), half_);
  adam_.momentum_after(half_);
  zero_where_zero(adam_.variance(), half_);
  ops.copy(half_, adam_.momentum());
  adam_.precondition(adam_.next_rate(node_.round()), adam_.momentum(), half_);
  if (Status status = node_.here(late_.step(adam_, node_.x(), half_)); !status.ok()) {
    return status;
  }
  ops.subtract(from, half_, half_);
  return node_.require_finite(half_, "updated model");
}

Status GossipAdam::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "decentralized 1-bit Adam takes one gradient a round");
  check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
  if (Status status = node_.stepper().enter_step_rule(gradient); !status.ok()) {
    return status;
  }
  const Ops& ops = node_.ops();
  if (!squeezing()) {
    ops.copy(mixed_variance_, adam_.variance());
    if (learning()) {
      if (Status status = node_.here(adam_.observe(gradient)); !status.ok()) {
        return status;
      }
    }
    if (Status status = step_from(mixed_model_, gradient); !status.ok()) {
      return status;
    }
    // The models just exchanged are where the public copies start.
    ops.copy(node_.x(), public_.copy);
    ops.subtract(mixed_model_, node_.x(), public_.pull);
    ops.copy(half_, node_.x());
    node_.finish_round();
    return {};
  }

  // x_i^½ = x_i − γ m̂_i / (√v̂ + ε)
  if (Status status = step_from(node_.x(), gradient); !status.ok()) {
    return status;
  }
  // send q_i = C(x_i^½ − x̂_i); x̂_i ← x̂_i + q_i
  ops.subtract(half_, public_.copy, mixed_model_);
  if (Status status = node_.require_finite(mixed_model_, "difference to the public copy");
      !status.ok()) {
    return status;
  }
  const auto payload = node_.encoder().encode(mixed_model_, mail_.outgoing());
  if (Status status = node_.encoder().decode_own(payload, 1, public_.copy); !status.ok()) {
    return status;
  }
  mail_.post(plan(), late_gossip_.append(mail_.outgoing(), payload.size()));
  return {};
}

Status GossipAdam::squeeze() {
  const Ops& ops = node_.ops();
  // p_i ← p_i + Σ_j (W_ij − 1[i = j]) q_j
  // x_i ← x_i^½ + η p_i
  if (Status status = late_gossip_.read(node_, mail_); !status.ok()) {
    return status;
  }
  FiniteWatch watch(node_);
  const auto step = [&](std::size_t first, std::span<const float> pull) {
    const auto half = std::span(half_).subspan(first, pull.size());
    watch.note(ops.combine({{1, half}, {eta_, pull}}, half));
  };
  if (Status status = public_.take_changes(node_, mail_, mixed_model_, std::ref(step),
                                           late_gossip_.encoding_in());
      !status.ok()) {
    return status;
  }
  mail_.close();
  late_gossip_.take();
  if (Status status = node_.here(late_.join(adam_)); !status.ok()) {
    return status;
  }
  if (Status status = watch.require(half_, "updated model"); !status.ok()) {
    return status;
  }
  ops.copy(half_, node_.x());
  node_.finish_round();
  return {};
}

std::vector<std::string> GossipAdam::take_warnings() {
  return squeezing() ? notice_.take(node_.layout(), adam_.variance(), freeze_step_)
                     : std::vector<std::string>();
}

void GossipAdam::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(freeze_step_);
  public_.save(out);
  late_.save(out);
}

Status GossipAdam::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  const auto freeze_step = in.read<Round>();
  if (in.failed() || freeze_step != freeze_step_) {
    return {Fault::malformed, "checkpoint of a run with another freeze step"};
  }
  if (Status status = public_.load(in, "model"); !status.ok()) {
    return status;
  }
  return late_.load(in, adam_, freeze_step_);
}

namespace {

constexpr Hyperparameter kGossipAdamHyperparameters[] = {freeze_step(""),
                                                         consensus_stepsize(default_eta<1>)};

}  // namespace

constinit const AlgorithmInfo GossipAdam::kInfo = {
    .name = "onebit-adam-gossip",
    .title = "Decentralized 1-bit Adam",
    .paper = "sotto's own, after arXiv:2102.02888 and arXiv:1902.00340",
    .rule =
        "m_i ← β₁ m_i + (1 − β₁) g_i; x_i^½ = x_i − γ m_i / (√v + ε), v frozen and "
        "common; x̂_i ← x̂_i + C(x_i^½ − x̂_i); x_i ← x_i^½ + η Σ_j W_ij (x̂_j − x̂_i)",
    .summary =
        "Adam between neighbours in a bit an element, after freeze_step rounds in "
        "full precision",
    .hyperparameters = kGossipAdamHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::symmetric,
    .step_rules = {.only = "adam"},
    .bytes = "degree · |C|; degree · 8d before the freeze",
    .memory = {.floats = 5},
    .default_compressor = "sign",
    .planned = {.why_not = "its rounds stay in full precision after the freeze until all nodes "
                           "have one variance, and no steady round stands for that"},
    .wire_id = wire_id(AlgorithmId::gossip_adam),
    .build = build_algorithm<GossipAdam>};

}  // namespace sotto
