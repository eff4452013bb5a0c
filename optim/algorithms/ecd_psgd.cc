#include <sotto/optim/algorithms/ecd_psgd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <sotto/kernels/combination.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {

EcdPsgd::EcdPsgd(AlgorithmSetup setup)
    : DirectionAlgorithm(kInfo, std::move(setup), ReplicaExchange::make_mailbox),
      estimates_(node_, mail_, node_.x(), /*lead=*/1),
      clock_limit_(node_.hyperparameters().count("clock")),
      own_(node_.x(), node_.ops()),
      next_(node_.vector()),
      z_(node_.vector()) {}

float EcdPsgd::clock(Round round) const {
  return static_cast<float>(std::min(round + 1, clock_limit_));
}

Status EcdPsgd::take(const Direction& d) {
  const Ops& ops = node_.ops();
  const auto x = node_.x();
  const float t = clock(node_.round());

  // 1. x_i^{t+1} = Σ_j W_ij y_j^t − γ g_i
  Combination sum(ops, next_);
  sum.add(node_.self_weight(), own_);
  for (const Replica& neighbour : estimates()) {
    sum.add(neighbour.weight, ReplicaExchange::value(neighbour, own_));
  }
  sum.add(-d.scale, d.values).write();

  // 2. z_i = x_i^t + (t/2) (x_i^{t+1} − x_i^t); send C(z_i)
  const auto extrapolated = [&](std::size_t first, std::span<float> z) {
    const auto from = std::span<const float>(x).subspan(first, z.size());
    ops.subtract(std::span<const float>(next_).subspan(first, z.size()), from, z);
    return ops.combine({{t / 2, z}, {1, from}}, z);
  };
  const auto encoded = estimates_.encode(
      own_, {.make = std::ref(extrapolated), .reads = {next_, x}, .residual = false}, z_,
      "extrapolated model");
  if (!encoded) {
    return encoded.status();
  }
  const Update& update = *encoded;

  // 3. y_i^{t+1} = y_i^t + (2/t) (C(z_i) − y_i^t)
  if (Status status = advance_estimate(node_.round(), update.encoding, own_); !status.ok()) {
    return node_.fault(status.fault(), "own encoding: " + status.message());
  }
  ops.copy(next_, x);
  estimates_.post(update, own_);
  node_.finish_round();
  return {};
}

Status EcdPsgd::advance_estimate(Round round, std::span<const std::byte> encoding,
                                 std::span<float> y) {
  const Ops& ops = node_.ops();
  ops.combine({{-1, y}}, z_);
  if (Status status = node_.compressor().decode_add(encoding, 1, z_); !status.ok()) {
    return status;
  }
  ops.axpy(2 / clock(round), z_, y);
  return {};
}

Status EcdPsgd::complete(const Exchange& exchange) {
  // 3. y_j^{t+1} = y_j^t + (2/t) (C(z_j) − y_j^t)
  const auto apply = [&](std::span<const std::byte> encoding, std::span<float> estimate) {
    return advance_estimate(mail_.round(), encoding, estimate);
  };
  if (Status status = estimates_.accept(exchange, std::ref(apply)); !status.ok()) {
    return status;
  }
  mail_.close();
  return {};
}

AlgorithmCounters EcdPsgd::counters() const {
  return {.saturated = node_.encoder().saturated(),
          .bad_frames = mail_.bad_frames(),
          .drifted = estimates_.drifted()};
}

void EcdPsgd::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(own_, out);
  estimates_.save(out);
}

Status EcdPsgd::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "own estimate", own_); !status.ok()) {
    return status;
  }
  return estimates_.load(in);
}

namespace {

constexpr Hyperparameter kEcdHyperparameters[] = {
    {.key = "clock",
     .symbol = "T",
     .help = "where the extrapolation's clock t stops; a small T suits a fine grid",
     .most = static_cast<double>(EcdPsgd::kClockLimit),
     .why = "float32 follows no further",
     .fallback = "4096",
     .setting = "extrapolation_clock"}};

}  // namespace

constinit const AlgorithmInfo EcdPsgd::kInfo = {
    .name = "ecd",
    .title = "ECD-PSGD, extrapolation compression",
    .paper = "Tang et al. 2018, arXiv:1803.06443",
    .rule =
        "x_i⁺ = Σ_j W_ij y_j − γ g_i; y_i ← (1 − 2/t) y_i + (2/t) C(z_i), "
        "z_i = (1 − t/2) x_i + (t/2) x_i⁺",
    .summary = "for coarse unbiased quantizers with a fixed step",
    .hyperparameters = kEcdHyperparameters,
    .contract = ContractKind::unbiased_absolute,
    .graph = GraphNeed::symmetric,
    .graph_change = GraphChange::with_handover,
    .cutting = Cutting::separable,
    .hides_behind = HidesBehind::next_gradient,
    .step_rules = {.may_follow_model = true},
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · |C|; 4d along a new edge",
    .memory = {.floats = 3, .per_neighbour = 1},
    .default_compressor = "grid:8:0.05",
    .planned = {.why_not = "the step of its grid has to fit the values of the model, at which a "
                           "plan does not look"},
    .wire_id = wire_id(AlgorithmId::ecd),
    .build = build_algorithm<EcdPsgd>};

}  // namespace sotto
