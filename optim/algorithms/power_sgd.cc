#include <sotto/optim/algorithms/power_sgd.h>

#include <algorithm>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/compress/low_rank.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

std::size_t rank_of(const LocalNode& node) {
  const auto options = low_rank_options(node.compressor());
  check(options.has_value(), "no other compressor is admitted");
  if (options->steps != 1) {
    refuse("compressor", node.compressor().spec(),
           "powersgd makes one step of the iteration a round; leave steps out");
  }
  return static_cast<std::size_t>(options->rank);
}

void to_floats(std::span<const double> from, std::span<float> to) {
  std::ranges::transform(from, to.begin(), [](double value) { return static_cast<float>(value); });
}

}  // namespace

PowerSgd::PowerSgd(AlgorithmSetup setup)
    : NodeAlgorithm(kInfo, std::move(setup)),
      rank_(rank_of(node_)),
      parts_([this] {
        std::vector<Part> parts;
        std::size_t left_at = 0;
        std::size_t right_at = 0;
        for (const FactorPiece& piece : factor_pieces(node_.layout(), rank_)) {
          Part part{piece, left_at, piece.size, right_at, 0};
          if (piece.matrix) {
            part.left_size = piece.matrix->longer() * rank_;
            part.right_size = piece.matrix->shorter() * rank_;
          }
          left_at += part.left_size;
          right_at += part.right_size;
          parts.push_back(part);
        }
        return parts;
      }()),
      left_(parts_.empty() ? 0 : parts_.back().left_at + parts_.back().left_size),
      right_(parts_.empty() ? 0 : parts_.back().right_at + parts_.back().right_size),
      mean_(node_, std::max(left_.size(), right_.size()), RingCodec::full),
      compensated_(node_.dimension()),
      error_(node_.dimension()),
      update_(node_.dimension()),
      direction_(node_.dimension()) {
  std::size_t longest = 0;
  for (const Part& part : parts_) {
    longest = std::max({longest, part.left_size, part.right_size});
  }
  wide_.reserve(longest);
}

Status PowerSgd::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "PowerSGD takes one gradient a round");
  if (Status status = node_.require_finite(gradient, "gradient"); !status) {
    return status;
  }
  node_.ops().copy(gradient, compensated_);
  node_.ops().axpy(1, error_, compensated_);
  if (Status status = node_.require_finite(compensated_, "compensated gradient"); !status) {
    return status;
  }
  begin_left();
  return mean_.busy() ? Status() : proceed();
}

void PowerSgd::orthonormalize_floats(std::span<float> factor) {
  wide_.assign(factor.begin(), factor.end());
  orthonormalize(rank_, wide_);
  to_floats(wide_, factor);
}

void PowerSgd::begin_left() {
  RandomStream random({.seed = node_.seed(), .round = node_.round(), .purpose = Purpose::select});
  for (const Part& part : parts_) {
    const auto m = of(part, compensated_);
    if (!part.piece.matrix) {
      std::ranges::copy(m, left(part).begin());
      continue;
    }
    fill_zero_columns(rank_, right(part), random);
    orthonormalize_floats(right(part));  // S
    wide_.resize(part.left_size);
    times(*part.piece.matrix, m, rank_, right(part), wide_);
    to_floats(wide_, left(part));
  }
  right_due_ = true;
  mean_.begin(left_, 0, "sum of the left factors");
}

void PowerSgd::begin_right() {
  for (const Part& part : parts_) {
    if (part.piece.matrix) {
      orthonormalize_floats(left(part));  // P
      wide_.resize(part.right_size);
      transposed_times(*part.piece.matrix, of(part, compensated_), rank_, left(part), wide_);
      to_floats(wide_, right(part));
    }
  }
  right_due_ = false;
  mean_.begin(right_, mean_.phases(), "sum of the right factors");
}

Status PowerSgd::proceed() {
  if (right_due_) {
    begin_right();
    if (mean_.busy()) {
      return {};
    }
  }
  return step();
}

Status PowerSgd::complete(const Exchange& exchange) {
  const Status status = mean_.complete(exchange);
  return !status || mean_.busy() ? status : proceed();
}

Status PowerSgd::step() {
  const Ops& ops = node_.ops();
  ops.fill(0, update_);
  for (const Part& part : parts_) {
    const auto update = of(part, update_);
    if (part.piece.matrix) {
      add_product(*part.piece.matrix, rank_, 1, left(part), right(part), update);
      ops.subtract(of(part, compensated_), update, of(part, error_));
    } else {
      std::ranges::copy(left(part), update.begin());
    }
  }
  if (Status status = node_.require_finite(error_, "error"); !status) {
    return status;
  }
  if (Status status = node_.move(node_.x(), update_, direction_); !status) {
    return status;
  }
  ops.copy(direction_, node_.x());
  node_.finish_round();
  return {};
}

AlgorithmCounters PowerSgd::counters() const {
  return {.saturated = node_.saturated(), .bad_frames = mean_.bad_frames()};
}

void PowerSgd::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(error_, out);
  write_floats(right_, out);
}

Status PowerSgd::load(ByteReader& in) {
  if (Status status = node_.load(in); !status) {
    return status;
  }
  if (Status status = read_floats(in, "error", error_); !status) {
    return status;
  }
  return read_floats(in, "right factors", right_);
}

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
    .time_varying = true,
    .family = "lowrank",
    .most_nodes = RingMean::most_nodes(2),
    .agreement = SettingsAgreement::required,
    .bytes = "2 (n−1)/n · 4f, f = Σ K (rows + columns) over the matrices",
    .memory = {.floats = 4},
    .default_compressor = "lowrank:2",
    .wire_id = wire_id(AlgorithmId::powersgd),
    .build = build_algorithm<PowerSgd>};

}  // namespace sotto
