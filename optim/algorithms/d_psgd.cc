#include <sotto/optim/algorithms/d_psgd.h>

#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>

namespace sotto {

DPsgd::DPsgd(AlgorithmSetup setup)
    : node_(kInfo, std::move(setup)),
      mail_(node_, max_in_degree(node_), node_.compressor().max_bytes(node_.dimension())),
      mixed_(node_.vector()),
      next_(node_.scratch()) {}

Peers DPsgd::peers() const { return graph_peers(node_, mail_); }

bool DPsgd::begin_round(Exchange& out) {
  node_.begin_round();
  const auto payload = node_.encode(node_.x(), mail_.outgoing());
  mail_.post(graph_plan(node_), payload.size(), out);
  return true;
}

Status DPsgd::frame_arrived(const ExchangeTag& /*tag*/, Rank from,
                            std::span<const std::byte> frame) {
  return mail_.accept(from, frame).status();
}

Result<bool> DPsgd::exchange_done(const ExchangeTag& /*tag*/, Exchange& /*out*/) {
  if (Status status = mail_.require_complete(); !status) {
    return status;
  }
  // Σ_j W_ij x_j, the own term first, then the neighbours in rank order.
  node_.ops().combine({{node_.self_weight(), node_.x()}}, mixed_);
  if (Status status = decode_neighbours(node_, mail_, mixed_); !status) {
    return status;
  }
  mail_.close();
  return false;
}

Status DPsgd::gradient_ready(std::span<const float> gradient, Exchange& /*out*/, bool* post) {
  check(accepts_gradient(), "D-PSGD takes a gradient after its exchange");
  *post = false;
  // x_i ← Σ_j W_ij x_j − γ g_i
  if (Status status = node_.step_from(mixed_, gradient, next_); !status) {
    return status;
  }
  node_.finish_round();
  return {};
}

AlgorithmCounters DPsgd::counters() const {
  return {.saturated = node_.saturated(), .bad_frames = mail_.bad_frames()};
}

constinit const AlgorithmInfo DPsgd::kInfo = {
    .name = "dpsgd",
    .title = "D-PSGD, full precision between neighbours",
    .paper = "Lian et al. 2017, arXiv:1705.09056",
    .rule = "x_i ← Σ_j W_ij x_j − γ g_i",
    .summary = "for links with latency and with bandwidth to spare",
    .contract = ContractKind::exact,
    .graph = GraphNeed::doubly_stochastic,
    .time_varying = true,
    .overlaps = true,
    .separable = true,
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · 4d",
    .memory = {.floats = 2},
    .default_compressor = "none",
    .wire_id = wire_id(AlgorithmId::dpsgd),
    .build = build_algorithm<DPsgd>};

}  // namespace sotto
