#include <sotto/optim/step_rules/muon.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/finite_direction.h>

namespace sotto {
namespace {

std::size_t rows_of(const ParameterBlock& matrix) { return matrix.shape.front(); }

std::size_t columns_of(const ParameterBlock& matrix) {
  return matrix.size == 0 ? 0 : matrix.size / rows_of(matrix);
}

/// Multiply-adds of the Newton–Schulz steps (newton_schulz.h).
double multiply_adds(const ParameterBlock& matrix) {
  const auto [m, n] =
      std::minmax({static_cast<double>(rows_of(matrix)), static_cast<double>(columns_of(matrix))});
  return 10 * m * m * n + 5 * m * m * m;
}

/// s of a matrix.
double factor(UpdateScale scale, const ParameterBlock& matrix) {
  constexpr double kAsAdamW = 0.2;  // the root mean square of AdamW's steps
  const auto rows = static_cast<double>(rows_of(matrix));
  const auto columns = static_cast<double>(columns_of(matrix));
  switch (scale) {
    case UpdateScale::original:
      return std::sqrt(std::max(1.0, rows / columns));
    case UpdateScale::spectral:
      return std::sqrt(rows / columns);
    case UpdateScale::adamw:
      return kAsAdamW * std::sqrt(std::max(rows, columns));
  }
  return 1;
}

}  // namespace

Muon::Muon(const StepRuleOptions& options, const Ops& ops)
    : ops_(ops),
      rate_(options.learning_rate, options.schedule),
      clip_(options.clip_norm, ops),
      momentum_(options.momentum),
      nesterov_(options.nesterov),
      weight_decay_(options.weight_decay),
      scale_(options.update_scale),
      steps_(ops) {}

void Muon::resize(const ParameterLayout& layout) {
  if (layout.empty()) {
    refuse("step_rule", name(),
           "it makes steps of matrices, and none of the model's tensors is left for it; give the "
           "layout of a model that has some, or take adamw");
  }
  for (const ParameterBlock& matrix : layout) {
    if (matrix.shape.size() < 2) {
      refuse("step_rule", name(),
             fmt::format("it makes steps of matrices, and '{}' is none; write '; 1d=adamw' behind "
                         "it, or another rule for that tensor",
                         matrix.name));
    }
    steps_.reserve(rows_of(matrix), columns_of(matrix));
  }
  layout_ = layout;
  moment_ = Vector(momentum_ == 0 ? 0 : dimension_of(layout), ops_);
}

Status Muon::direction(Round round, std::span<const float> x, std::span<const float> gradient,
                       std::span<float> d) {
  begin_parts(round);
  return direction_of(clip_.factor(gradient), 0, x, gradient, d);
}

Status Muon::direction_of(float clip, std::size_t first, std::span<const float> x,
                          std::span<const float> gradient, std::span<float> d) {
  bool finite = true;
  for (auto matrix = std::ranges::lower_bound(layout_, first, {}, &ParameterBlock::offset);
       matrix != layout_.end() && matrix->offset < first + d.size(); ++matrix) {
    const std::size_t at = matrix->offset - first;
    finite = matrix_direction(clip, *matrix, x.subspan(at, matrix->size),
                              gradient.subspan(at, matrix->size), d.subspan(at, matrix->size)) &&
             finite;
  }
  if (finite) {
    return {};
  }
  Status status = finite_direction(d, ops_);
  return status.ok() && momentum_ != 0 ? finite_direction(moment_, ops_) : status;
}

bool Muon::matrix_direction(float clip, const ParameterBlock& matrix, std::span<const float> x,
                            std::span<const float> gradient, std::span<float> d) {
  if (matrix.size == 0) {
    return true;
  }
  const auto mu = static_cast<float>(momentum_);
  const float of_gradient = clip * static_cast<float>(1 - momentum_);
  bool finite = true;
  if (momentum_ == 0) {
    ops_.combine({{clip, gradient}}, d);
  } else {
    const auto moment = matrix.of(std::span<float>(moment_));
    finite = ops_.combine({{mu, moment}, {of_gradient, gradient}}, moment);
    if (nesterov_) {
      ops_.combine({{of_gradient, gradient}, {mu, moment}}, d);
    } else {
      ops_.copy(moment, d);
    }
  }
  steps_.orthogonalize(rows_of(matrix), columns_of(matrix), d, d);
  const auto step = static_cast<float>(round_rate_ * factor(scale_, matrix));
  const auto decay = static_cast<float>(round_rate_ * weight_decay_);
  return (decay == 0 ? ops_.combine({{step, d}}, d) : ops_.combine({{step, d}, {decay, x}}, d)) &&
         finite;
}

void Muon::save(ByteBuffer& out) const {
  out.write_string(name());
  write_floats(moment_, out);
}

Status Muon::load(ByteReader& in) {
  if (Status status = expect_name(in, "step rule", name()); !status.ok()) {
    return status;
  }
  return read_floats(in, "momentum", moment_);
}

namespace {

// AdamW has its own, for the tensors that are left to it.
constexpr auto kMuonSettings =
    std::to_array<std::string_view>({"momentum", "nesterov", "update_scale"});

std::unique_ptr<StepRule> build_muon(const StepRuleOptions& options, const Ops& ops) {
  if (!ops.on_host()) {
    refuse("step_rule", "muon",
           "it multiplies matrices on the host alone; take another rule, or leave the accelerator "
           "out");
  }
  return std::make_unique<Muon>(options, ops);
}

}  // namespace

constinit const StepRuleInfo Muon::kInfo = {
    .name = "muon",
    .learning_rate = 0.02,
    .outer_learning_rate = 0.02,
    .momentum = 0.95,
    .nesterov = true,
    .settings = kMuonSettings,
    .separable = true,
    .others = "ends=adamw; 1d=adamw",
    .planned = true,
    .multiply_adds = multiply_adds,
    .build = build_muon,
};

}  // namespace sotto
