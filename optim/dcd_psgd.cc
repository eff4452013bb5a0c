#include <sotto/optim/dcd_psgd.h>

#include <utility>

#include <sotto/optim/neighbours.h>

namespace sotto {

DcdPsgd::DcdPsgd(AlgorithmSetup setup)
    : node_(AlgorithmId::dcd, "dcd", std::move(setup)),
      mail_(node_, max_in_degree(node_), max_update_bytes(node_)),
      replicas_(make_replicas(node_)),
      z_(node_.dimension()),
      direction_(node_.dimension()) {}

Peers DcdPsgd::peers() const { return graph_peers(node_, mail_); }

bool DcdPsgd::begin_round(Exchange& /*out*/) {
  node_.begin_round();
  return false;
}

Status DcdPsgd::gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) {
  check(accepts_gradient(), "DCD-PSGD takes a gradient after the exchange of the round before");
  *post = false;
  if (Status status = node_.direction(gradient, direction_); !status) {
    return status;
  }
  const Ops& ops = node_.ops();
  const auto x = node_.x();

  // 1. x_i^½ = W_ii x_i + Σ_{j≠i} W_ij x̂_j − γ g_i
  ops.copy(x, z_);
  ops.scale(node_.self_weight(), z_);
  for (const Replica& neighbour : replicas_) {
    ops.axpy(neighbour.weight, neighbour.model, z_);
  }
  ops.axpy(-1, direction_, z_);

  // 2. z_i = x_i^½ − x_i; send C(z_i)
  ops.subtract(z_, x, z_);
  if (Status status = node_.require_finite(z_, "difference of the models"); !status) {
    return status;
  }
  const Update update = encode_update(node_, version_, x, z_, mail_.outgoing());

  // 3. x_i ← x_i + C(z_i)
  if (Status status = node_.decode_own(update.encoding, 1, x); !status) {
    return status;
  }
  version_.advance(update);
  mail_.post(graph_plan(node_), update.payload_bytes(), out);
  *post = true;
  node_.finish_round();
  return {};
}

Status DcdPsgd::frame_arrived(Rank from, std::span<const std::byte> frame) {
  const auto edge = mail_.accept(from, frame);
  if (!edge) {
    return edge.status();
  }
  Replica& neighbour = replicas_[*edge];
  const auto update = open_update(mail_, *edge, neighbour);
  if (!update) {
    return update.status();
  }
  // 3. x̂_j ← x̂_j + C(z_j)
  const Status decoded = node_.compressor().decode_add(update->encoding, 1, neighbour.model);
  if (!decoded) {
    return mail_.refuse(*edge, decoded);
  }
  neighbour.version.advance(*update);
  return {};
}

Result<bool> DcdPsgd::exchange_done(Exchange& /*out*/) {
  if (Status status = mail_.require_complete(); !status) {
    return status;
  }
  mail_.close();
  return false;
}

AlgorithmCounters DcdPsgd::counters() const {
  return {.saturated = node_.saturated(), .bad_frames = mail_.bad_frames()};
}

void DcdPsgd::save(ByteBuffer& out) const {
  node_.save(out);
  version_.save(out);
  save_replicas(replicas_, out);
}

Status DcdPsgd::load(ByteReader& in) {
  if (Status status = node_.load(in); !status) {
    return status;
  }
  version_.load(in);
  return load_replicas(in, replicas_);
}

}  // namespace sotto
