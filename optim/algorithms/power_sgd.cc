#include <sotto/optim/algorithms/power_sgd.h>

#include <algorithm>
#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/state_io.h>

namespace sotto {

PowerSgd::PowerSgd(AlgorithmSetup setup)
    : NodeAlgorithm(kInfo, std::move(setup)),
      factors_(node_, factor_columns(node_)),
      compensated_(node_.dimension()),
      error_(node_.dimension()),
      update_(node_.dimension()),
      direction_(node_.dimension()) {}

Status PowerSgd::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "PowerSGD takes one gradient a round");
  if (Status status = node_.require_finite(gradient, "gradient"); !status.ok()) {
    return status;
  }
  node_.ops().copy(gradient, compensated_);
  node_.ops().axpy(1, error_, compensated_);
  if (Status status = node_.require_finite(compensated_, "compensated gradient"); !status.ok()) {
    return status;
  }
  factors_.begin(compensated_);
  return factors_.busy() ? Status() : step();
}

Status PowerSgd::complete(const Exchange& exchange) {
  const Status status = factors_.complete(exchange);
  return !status.ok() || factors_.busy() ? status : step();
}

Status PowerSgd::step() {
  const Ops& ops = node_.ops();
  ops.fill(0, update_);
  for (const FactorMeans::Part& part : factors_.parts()) {
    const auto update = part.of(std::span<float>(update_));
    if (part.piece.matrix) {
      add_product(*part.piece.matrix, factors_.columns(), 1, factors_.left(part),
                  factors_.right(part), update);
      ops.subtract(part.of(std::span<const float>(compensated_)), update,
                   part.of(std::span<float>(error_)));
    } else {
      std::ranges::copy(factors_.left(part), update.begin());
    }
  }
  if (Status status = node_.require_finite(error_, "error"); !status.ok()) {
    return status;
  }
  if (Status status = node_.stepper().move(node_.x(), update_, direction_); !status.ok()) {
    return status;
  }
  ops.copy(direction_, node_.x());
  node_.finish_round();
  return {};
}

AlgorithmCounters PowerSgd::counters() const {
  return {.saturated = node_.encoder().saturated(), .bad_frames = factors_.bad_frames()};
}

void PowerSgd::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(error_, out);
  factors_.save(out);
}

Status PowerSgd::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "error", error_); !status.ok()) {
    return status;
  }
  return factors_.load(in);
}

constexpr std::string_view kPowerSgdPlanned[] = {"lowrank:2", "lowrank:4"};

constinit const AlgorithmInfo PowerSgd::kInfo = {
    .name = "powersgd",
    .title = "PowerSGD, all-reduce of low-rank factors",
    .paper = "Vogels et al. 2019, arXiv:1905.13727",
    .rule =
        "M_i = g_i + e_i; P = orth(mean_i M_i S); Q = mean_i M_iᵀ P; "
        "x ← x − γ P Qᵀ; e_i = M_i − P Qᵀ; S ← Q",
    .summary = "as allreduce, for models of large matrices, in K columns of each",
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .compressors = {.family = "lowrank"},
    .most_nodes = RingMean::most_nodes(FactorMeans::kMeans),
    .agreement = SettingsAgreement::required,
    .bytes = "2 (n−1)/n · 4f, f = Σ K (rows + columns) over the matrices",
    .memory = {.floats = 4},
    .default_compressor = "lowrank:2",
    .planned = {.compressors = kPowerSgdPlanned, .products = 3},
    .wire_id = wire_id(AlgorithmId::powersgd),
    .build = build_algorithm<PowerSgd>};

}  // namespace sotto
