#include <sotto/optim/algorithms/d_psgd.h>

#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>

namespace sotto {

DPsgd::DPsgd(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup)),
      mixed_(node_.dimension(), node_.ops(), shared_vectors(node_)),
      next_(node_.scratch()) {
  mail_.share_outgoing(node_.shared_frames());
}

void DPsgd::begin_round() {
  node_.begin_round();
  const auto payload = node_.encoder().encode(node_.x(), mail_.outgoing());
  mail_.post(graph_plan(node_), payload.size());
}

Status DPsgd::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  // Σ_j W_ij x_j, the own term first, then the neighbours in rank order.
  const std::span<float> mixed = mixed_.use();
  node_.ops().combine({{node_.self_weight(), node_.x()}}, mixed);
  if (Status status = decode_neighbours(node_, mail_, mixed); !status.ok()) {
    return status;
  }
  mail_.close();
  return {};
}

Status DPsgd::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "D-PSGD takes a gradient after its exchange");
  // x_i ← Σ_j W_ij x_j − γ g_i
  Status status = node_.stepper().step_from(mixed_.use(), gradient, next_);
  if (status.ok()) {
    mixed_.give_back();
    node_.finish_round();
  }
  return status;
}

Status DPsgd::take_direction(const Direction& d) {
  check(accepts_gradient(), "D-PSGD takes a gradient after its exchange");
  if (Status status = node_.stepper().step_along(mixed_.use(), d, next_); !status.ok()) {
    return status;
  }
  mixed_.give_back();
  node_.ops().copy(next_, node_.x());
  node_.finish_round();
  return {};
}

constexpr std::string_view kDPsgdPlanned[] = {"none"};

constinit const AlgorithmInfo DPsgd::kInfo = {
    .name = "dpsgd",
    .title = "D-PSGD, full precision between neighbours",
    .paper = "Lian et al. 2017, arXiv:1705.09056",
    .rule = "x_i ← Σ_j W_ij x_j − γ g_i",
    .summary = "for links with latency and with bandwidth to spare",
    .contract = ContractKind::exact,
    .graph = GraphNeed::doubly_stochastic,
    .graph_change = GraphChange::any,
    .cutting = Cutting::separable,
    .hides_behind = HidesBehind::next_gradient,
    .local_steps = {.outer_after_mixing = true},
    .step_rules = {.may_follow_model = true},
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · 4d",
    .memory = {.floats = 2},
    .default_compressor = "none",
    .planned = {.compressors = kDPsgdPlanned},
    .wire_id = wire_id(AlgorithmId::dpsgd),
    .build = build_algorithm<DPsgd>};

}  // namespace sotto
