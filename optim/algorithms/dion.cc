#include <sotto/optim/algorithms/dion.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/adam.h>

namespace sotto {
namespace {

/// The tensors that are no matrix, one behind the other.
ParameterLayout layout_of_rest(std::span<const FactorMeans::Part> parts) {
  ParameterLayout layout;
  for (const FactorMeans::Part& part : parts) {
    if (!part.piece.matrix) {
      append_block(layout, "rest", {part.piece.size});
    }
  }
  return layout;
}

/// Scales the columns of q to length 1, as far as they have one.
void to_unit_columns(std::size_t columns, std::span<float> q) {
  constexpr double kSmall = 1e-8;  // keeps zeros zero
  for (std::size_t column = 0; column < columns; ++column) {
    double sum = 0;
    for (std::size_t i = column; i < q.size(); i += columns) {
      sum += static_cast<double>(q[i]) * static_cast<double>(q[i]);
    }
    const double factor = 1 / (std::sqrt(sum) + kSmall);
    for (std::size_t i = column; i < q.size(); i += columns) {
      q[i] = static_cast<float>(static_cast<double>(q[i]) * factor);
    }
  }
}

}  // namespace

Dion::Dion(AlgorithmSetup setup)
    : NodeAlgorithm(kInfo, std::move(setup)),
      factors_(node_, factor_columns(node_)),
      subtracted_(1 - node_.hyperparameters().real("momentum")),
      scale_(static_cast<double>(node_.hyperparameters().real("scale"))),
      momentum_(node_.dimension()),
      next_(node_.dimension()) {
  if (Adam::of(node_.step_rule()).clips()) {  // refuses a rule of the caller's, too
    throw Error("clip_norm",
                "dion forms no mean of the nodes' gradients, whose norm could be "
                "bounded, and its steps do not depend on it; leave it out");
  }
  const ParameterLayout rest = layout_of_rest(factors_.parts());
  node_.step_rule().resize(rest);  // matrices need no moments
  rest_x_.resize(dimension_of(rest));
  rest_d_.resize(dimension_of(rest));
}

Status Dion::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "Dion takes one gradient a round");
  if (Status status = node_.stepper().enter_step_rule(gradient); !status.ok()) {
    return status;
  }
  // 1. M_i ← M_i + g_i
  for (const FactorMeans::Part& part : factors_.parts()) {
    const auto moment = part.of(std::span<float>(momentum_));
    if (part.piece.matrix) {
      node_.ops().axpy(1, part.of(gradient), moment);
    } else {
      node_.ops().copy(part.of(gradient), moment);
    }
  }
  if (Status status = node_.require_finite(momentum_, "momentum"); !status.ok()) {
    return status;
  }
  factors_.begin(momentum_);
  return factors_.busy() ? Status() : step();
}

Status Dion::complete(const Exchange& exchange) {
  const Status status = factors_.complete(exchange);
  return !status.ok() || factors_.busy() ? status : step();
}

Status Dion::step() {
  const Adam& adam = Adam::of(node_.step_rule());
  node_.ops().copy(node_.x(), next_);
  for (const FactorMeans::Part& part : factors_.parts()) {
    if (part.piece.matrix) {
      step_matrix(part, scale_ * adam.learning_rate(node_.round()));
    }
  }
  if (Status status = step_rest(); !status.ok()) {
    return node_.here(status);
  }
  if (Status status = node_.require_finite(momentum_, "momentum"); !status.ok()) {
    return status;
  }
  if (Status status = node_.require_finite(next_, "updated model"); !status.ok()) {
    return status;
  }
  node_.ops().copy(next_, node_.x());
  node_.finish_round();
  return {};
}

void Dion::step_matrix(const FactorMeans::Part& part, double gamma) {
  const MatrixShape& shape = *part.piece.matrix;
  const auto p = factors_.left(part);
  const auto q = factors_.right(part);
  // 2. M_i ← M_i − (1 − μ) P Rᵀ; Q
  add_product(shape, factors_.columns(), -subtracted_, p, q, part.of(std::span<float>(momentum_)));
  to_unit_columns(factors_.columns(), q);
  // 3. x ← (1 − γλ) x − γ √(r/c) P Qᵀ
  const auto next = part.of(std::span<float>(next_));
  const double decay = gamma * Adam::of(node_.step_rule()).weight_decay();
  if (decay != 0) {
    node_.ops().scale(static_cast<float>(1 - decay), next);
  }
  const double ratio = static_cast<double>(shape.rows) / static_cast<double>(shape.columns);
  add_product(shape, factors_.columns(), static_cast<float>(-gamma * std::sqrt(ratio)), p, q, next);
}

Status Dion::step_rest() {
  if (rest_x_.empty()) {
    return {};
  }
  const auto each = [&](const auto& work) {
    std::size_t at = 0;
    for (const FactorMeans::Part& part : factors_.parts()) {
      if (!part.piece.matrix) {
        work(part, at);
        at += part.piece.size;
      }
    }
  };
  each([&](const FactorMeans::Part& part, std::size_t at) {
    std::ranges::copy(part.of(std::span<const float>(node_.x())), &rest_x_[at]);
    std::ranges::copy(factors_.left(part), &rest_d_[at]);
  });
  if (Status status = node_.step_rule().direction(node_.round(), rest_x_, rest_d_, rest_d_);
      !status.ok()) {
    return status;
  }
  each([&](const FactorMeans::Part& part, std::size_t at) {
    node_.ops().axpy(-1, std::span(rest_d_).subspan(at, part.piece.size),
                     part.of(std::span<float>(next_)));
  });
  return {};
}

AlgorithmCounters Dion::counters() const {
  return {.saturated = node_.encoder().saturated(), .bad_frames = factors_.bad_frames()};
}

void Dion::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(momentum_, out);
  factors_.save(out);
}

Status Dion::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "momentum", momentum_); !status.ok()) {
    return status;
  }
  return factors_.load(in);
}

namespace {

constexpr Hyperparameter kDionHyperparameters[] = {
    {.key = "momentum",
     .symbol = "μ",
     .help = "how much of a matrix's momentum stays where a step is made along it",
     .kind = HyperparameterKind::real,
     .most = 0.9999,
     .why = "0.95 is the paper's",
     .fallback = "0.95"},
    {.key = "scale",
     .symbol = "SCALE",
     .help = "the learning rate of matrices, in that of AdamW for all other tensors",
     .kind = HyperparameterKind::real,
     .most = 1e6,
     .why = "10 is the paper's",
     .fallback = "10"}};

}  // namespace

constexpr std::string_view kDionPlanned[] = {"lowrank:4", "lowrank:16"};

constinit const AlgorithmInfo Dion::kInfo = {
    .name = "dion",
    .title = "Dion, all-reduce of orthonormal updates of low rank",
    .paper = "Ahn et al. 2025, arXiv:2504.05295",
    .rule =
        "M_i ← M_i + g_i; P = orth(mean_i M_i Q); R = mean_i M_iᵀ P; M_i ← M_i − (1 − μ) P Rᵀ; "
        "Q = R with unit columns; x ← x − γ √(rows/columns) P Qᵀ; AdamW for what is no matrix",
    .summary = "steps like Muon's at powersgd's bytes, for models of large matrices",
    .hyperparameters = kDionHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .step_rules = {.only = "adamw"},
    .compressors = {.family = "lowrank"},
    .most_nodes = RingMean::most_nodes(FactorMeans::kMeans),
    .agreement = SettingsAgreement::required,
    .bytes = "2 (n−1)/n · 4f, f = Σ K (rows + columns) over the matrices",
    .memory = {.floats = 2},
    .default_compressor = "lowrank:4",
    .planned = {.compressors = kDionPlanned, .products = 4},
    .wire_id = wire_id(AlgorithmId::dion),
    .build = build_algorithm<Dion>};

}  // namespace sotto
