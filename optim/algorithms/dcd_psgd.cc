#include <sotto/optim/algorithms/dcd_psgd.h>

#include <functional>
#include <utility>

#include <sotto/kernels/combination.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>

namespace sotto {

DcdPsgd::DcdPsgd(AlgorithmSetup setup)
    : DirectionAlgorithm(kInfo, std::move(setup), ReplicaExchange::make_mailbox),
      replicas_(node_, mail_, node_.x(), /*lead=*/1),
      z_(node_.scratch()),
      direction_(node_.setup().directed ? 0 : node_.dimension(), node_.ops(),
                 shared_vectors(node_)) {}

Status DcdPsgd::take(const Direction& d) {
  const auto x = node_.x();

  // 1. x_i^½ = W_ii x_i + Σ_{j≠i} W_ij x̂_j − γ g_i
  // 2. z_i = x_i^½ − x_i; send C(z_i)
  // 3. x_i ← x_i + C(z_i)
  const auto movement = [&](std::size_t first, std::span<float> z) {
    const auto piece = [&](std::span<const float> of) { return of.subspan(first, z.size()); };
    Combination sum(node_.ops(), z);
    sum.add(node_.self_weight(), piece(x));
    for (const Replica& neighbour : replicas()) {
      sum.add(neighbour.weight, piece(ReplicaExchange::value(neighbour, x)));
    }
    sum.add(-d.scale, piece(d.values));
    return sum.add(-1, piece(x)).write();
  };
  const auto update = replicas_.encode(
      x, {.make = std::ref(movement), .reads = {x, d.values}, .residual = false, .add_to = x}, z_,
      "difference of the models");
  if (!update) {
    return update.status();
  }
  replicas_.post(*update, x);
  direction_.give_back();
  node_.finish_round();
  return {};
}

Status DcdPsgd::complete(const Exchange& exchange) {
  // 3. x̂_j ← x̂_j + C(z_j)
  const auto apply = [&](std::span<const std::byte> encoding, std::span<float> replica) {
    return node_.compressor().decode_add(encoding, 1, replica);
  };
  if (Status status = replicas_.accept(exchange, std::ref(apply)); !status.ok()) {
    return status;
  }
  mail_.close();
  return {};
}

AlgorithmCounters DcdPsgd::counters() const {
  return {.saturated = node_.encoder().saturated(),
          .bad_frames = mail_.bad_frames(),
          .drifted = replicas_.drifted()};
}

void DcdPsgd::save(ByteBuffer& out) const {
  node_.save(out);
  replicas_.save(out);
}

Status DcdPsgd::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  return replicas_.load(in);
}

constexpr std::string_view kDcdPlanned[] = {"quant:8", "quant:4"};

constinit const AlgorithmInfo DcdPsgd::kInfo = {
    .name = "dcd",
    .title = "DCD-PSGD, difference compression",
    .paper = "Tang et al. 2018, arXiv:1803.06443",
    .rule = "z_i = Σ_j W_ij x̂_j − γ g_i − x_i; x_i ← x_i + C(z_i)",
    .summary = "the first choice for quantizers of 4 bits and more on slow links",
    .contract = ContractKind::unbiased,
    .graph = GraphNeed::symmetric,
    .graph_change = GraphChange::with_handover,
    .cutting = Cutting::separable,
    .hides_behind = HidesBehind::next_gradient,
    .step_rules = {.may_follow_model = true},
    .compressors = {.bounded_by_spectrum = true},
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · |C|; 4d along a new edge",
    .memory = {.floats = 2, .per_neighbour = 1},
    .default_compressor = "quant:8",
    .planned = {.compressors = kDcdPlanned},
    .wire_id = wire_id(AlgorithmId::dcd),
    .build = build_algorithm<DcdPsgd>};

}  // namespace sotto
