#include <sotto/optim/algorithms/dcd_psgd.h>

#include <functional>
#include <utility>

#include <sotto/kernels/combination.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>

namespace sotto {

DcdPsgd::DcdPsgd(AlgorithmSetup setup)
    : node_(kInfo, std::move(setup)),
      mail_(ReplicaExchange::make_mailbox(node_)),
      replicas_(node_, mail_, node_.x(), /*lead=*/1),
      z_(node_.scratch()),
      direction_(node_.direction_room()) {}

Peers DcdPsgd::peers() const { return graph_peers(node_, mail_); }

bool DcdPsgd::begin_round(Exchange& /*out*/) {
  node_.begin_round();
  return false;
}

Status DcdPsgd::gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) {
  check(accepts_gradient(), "DCD-PSGD takes a gradient after the exchange of the round before");
  *post = false;
  const auto d = node_.direction_in(gradient, direction_);
  if (!d) {
    return d.status();
  }
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
    sum.add(-d->scale, piece(d->values));
    return sum.add(-1, piece(x)).write();
  };
  const auto update = replicas_.encode(
      x, {.make = std::ref(movement), .reads = {x, d->values}, .residual = false, .add_to = x}, z_,
      "difference of the models");
  if (!update) {
    return update.status();
  }
  replicas_.post(*update, x, out);
  *post = true;
  node_.finish_round();
  return {};
}

Status DcdPsgd::frame_arrived(const ExchangeTag& /*tag*/, Rank from,
                              std::span<const std::byte> frame) {
  const auto arrival = replicas_.open(from, frame);
  if (!arrival || arrival->replica == nullptr) {
    return arrival.status();
  }
  // 3. x̂_j ← x̂_j + C(z_j)
  return replicas_.applied(*arrival, node_.compressor().decode_add(arrival->update.encoding, 1,
                                                                   arrival->replica->model));
}

Result<bool> DcdPsgd::exchange_done(const ExchangeTag& /*tag*/, Exchange& /*out*/) {
  if (Status status = mail_.require_complete(); !status) {
    return status;
  }
  mail_.close();
  return false;
}

AlgorithmCounters DcdPsgd::counters() const {
  return {.saturated = node_.saturated(),
          .bad_frames = mail_.bad_frames(),
          .drifted = replicas_.drifted()};
}

void DcdPsgd::save(ByteBuffer& out) const {
  node_.save(out);
  replicas_.save(out);
}

Status DcdPsgd::load(ByteReader& in) {
  if (Status status = node_.load(in); !status) {
    return status;
  }
  return replicas_.load(in);
}

constinit const AlgorithmInfo DcdPsgd::kInfo = {
    .name = "dcd",
    .title = "DCD-PSGD, difference compression",
    .paper = "Tang et al. 2018, arXiv:1803.06443",
    .rule = "z_i = Σ_j W_ij x̂_j − γ g_i − x_i; x_i ← x_i + C(z_i)",
    .summary = "the first choice for quantizers of 4 bits and more on slow links",
    .contract = ContractKind::unbiased,
    .graph = GraphNeed::symmetric,
    .time_varying = true,
    .replicas = true,
    .overlaps = true,
    .separable = true,
    .bounded_by_spectrum = true,
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · |C|; 4d along a new edge",
    .memory = {.floats = 2, .per_neighbour = 1},
    .default_compressor = "quant:8",
    .wire_id = wire_id(AlgorithmId::dcd),
    .build = build_algorithm<DcdPsgd>};

}  // namespace sotto
