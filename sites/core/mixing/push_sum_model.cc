#include <sotto/sites/core/mixing/push_sum_model.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/optim/state_io.h>
#include <sotto/sites/core/mixing/local_steps.h>
#include <sotto/sites/core/pieces.h>
#include <sotto/sites/core/pull_bound.h>

namespace sotto::sites {
namespace {

/// φ: how much longer than γ a step of z may be, and how much shorter.
constexpr double kShortest = 0.125;
constexpr double kLongest = 4;

constexpr std::string_view kModel = "model x / ω";

/// ω φ, what a step of x is multiplied by; exactly 1 where the bounds of φ are not reached.
double step_scale(double mass) {
  const double wanted = 1 / mass;
  const double phi = std::clamp(wanted, kShortest, kLongest);
  return phi == wanted ? 1 : mass * phi;
}

}  // namespace

PushSumModel::PushSumModel(std::span<float> z, const Ops& ops)
    : z_(z),
      ops_(&ops),
      x_(z.size()),
      pull_(z.size()),
      v_(z.size()),
      next_(z.size()),
      zeros_(std::min(ops.piece(), z.size())) {}

void PushSumModel::begin() {
  mass_ = 1;
  ops_->copy(z_, x_);
  pulled_ = false;
}

void PushSumModel::clear() {
  mass_ = 0;
  ops_->fill(0, x_);
  pulled_ = false;
}

void PushSumModel::follow_z() {
  ops_->copy(z_, x_);
  ops_->scale(static_cast<float>(mass_), x_);
  pulled_ = false;
}

Status PushSumModel::take_over(ByteReader& in, double mass) {
  in.read_into(std::span(x_));
  check(in.finished() && mass > 0, "what was handed over can be taken back");
  mass_ = mass;
  pulled_ = false;
  return ratio(x_, z_);
}

std::span<float> PushSumModel::all() {
  ops_->copy(x_, v_);
  if (pulled_) {
    ops_->axpy(1, pull_, v_);
  }
  return v_;
}

std::span<const float> PushSumModel::pull_at(std::size_t first, std::size_t count) const {
  return pulled_ ? std::span(pull_).subspan(first, count) : std::span(zeros_).first(count);
}

bool PushSumModel::divide(std::span<const float> x, std::span<const float> pull, double mass,
                          std::span<float> z) const {
  ops_->combine({{1, pull}, {1, x}}, z);
  return ops_->combine({{static_cast<float>(1 / mass), z}}, z);
}

Status PushSumModel::ratio(std::span<const float> x, std::span<float> z) const {
  const bool finite = by_piece(*ops_, z.size(), [&](std::size_t first, std::size_t count) {
    return divide(x.subspan(first, count), pull_at(first, count), mass_, z.subspan(first, count));
  });
  return finite ? Status() : require_finite(*ops_, z, kModel);
}

Result<double> PushSumModel::step(const Direction& direction) {
  const Ops& ops = *ops_;
  const auto scale = static_cast<float>(step_scale(mass_));
  double moved = 0;
  const bool finite = by_piece(ops, z_.size(), [&](std::size_t first, std::size_t count) {
    const auto next = std::span(next_).subspan(first, count);
    step_along({direction.scale, direction.values.subspan(first, count)}, scale,
               std::span(x_).subspan(first, count), next);
    const auto now = z_.subspan(first, count);
    const auto before = std::span(v_).subspan(first, count);
    ops.copy(now, before);
    const bool good = divide(next, pull_at(first, count), mass_, now);
    moved += squared_distance(now, before);
    return good;
  });
  if (!finite) {
    Status status = require_finite(ops, z_, kModel);
    ops.copy(v_, z_);
    return status;
  }
  std::swap(x_, next_);
  return std::sqrt(moved);
}

void PushSumModel::step_along(const Direction& d, float scale, std::span<const float> x,
                              std::span<float> next) const {
  if (scale == 1) {
    ops_->combine({{1, x}, {-d.scale, d.values}}, next);
    return;
  }
  ops_->combine({{d.scale, d.values}}, next);
  ops_->scale(scale, next);
  ops_->subtract(x, next, next);
}

Status PushSumModel::move_by(float factor, std::span<const float> to, std::span<const float> from) {
  ops_->subtract(to, from, next_);
  // x = ω z − pull: what z moves by, ω times.
  ops_->scale(factor * static_cast<float>(mass_), next_);
  ops_->axpy(1, x_, next_);
  if (Status status = ratio(next_, v_); !status.ok()) {
    return status;
  }
  std::swap(x_, next_);
  ops_->copy(v_, z_);
  return {};
}

Status PushSumModel::rescale(double mass) {
  const double factor = mass / std::exchange(mass_, mass);
  // A factor in float32 alone would move z by as much of itself in every round, always one way.
  const auto high = static_cast<float>(factor);
  const auto low = static_cast<float>(factor - static_cast<double>(high));
  ops_->copy(x_, next_);
  ops_->scale(high, x_);
  ops_->axpy(low, next_, x_);
  return ratio(x_, z_);  // to the bit what a state is read as
}

Status PushSumModel::fill_up(double mass, std::span<const float> of) {
  const double more = mass - std::exchange(mass_, mass);
  ops_->axpy(static_cast<float>(more), of, x_);
  return ratio(x_, z_);
}

void PushSumModel::gave(double mass) {
  pulled_ = true;
  mass_ -= mass;
}

void PushSumModel::pull_as_is(std::span<const std::byte> floats, float whole, double mass) {
  if (!pulled_) {
    ops_->fill(0, pull_);
    pulled_ = true;
  }
  ops_->fp32_axpy(whole, floats, pull_);
  mass_ += mass;
}

Status PushSumModel::pull_values(double mass) {
  const double sum = mass_ + mass;
  const bool finite = by_piece(*ops_, v_.size(), [&](std::size_t first, std::size_t count) {
    const auto v = std::span(v_).subspan(first, count);
    const auto next = std::span(next_).subspan(first, count);
    ops_->combine({{1, pull_at(first, count)}, {1, v}}, next);
    return divide(std::span<const float>(x_).subspan(first, count), next, sum, v);
  });
  if (!finite) {
    return require_finite(*ops_, v_, kModel);
  }
  std::swap(pull_, next_);
  pulled_ = true;
  mass_ = sum;
  return {};
}

Status PushSumModel::fold() {
  const auto inverse = static_cast<float>(1 / mass_);
  const bool finite = by_piece(*ops_, z_.size(), [&](std::size_t first, std::size_t count) {
    const auto x = std::span(x_).subspan(first, count);
    ops_->combine({{1, pull_at(first, count)}, {1, x}}, x);
    return ops_->combine({{inverse, x}}, z_.subspan(first, count));
  });
  pulled_ = false;
  return finite ? Status() : require_finite(*ops_, z_, kModel);
}

void PushSumModel::save(ByteBuffer& out) const {
  write_floats(x_, out);
  // As write_floats, without a whole vector of zeros where nothing has pulled.
  out.write(std::uint64_t{pull_.size()});
  for (std::size_t first = 0; first < pull_.size(); first += zeros_.size()) {
    out.write_span(pull_at(first, std::min(zeros_.size(), pull_.size() - first)));
  }
}

Status PushSumModel::load(ByteReader& in, double mass) {
  mass_ = mass;
  pulled_ = true;
  Status status = read_floats(in, "x", x_);
  return status.ok() ? read_floats(in, "pull", pull_) : status;
}

}  // namespace sotto::sites
