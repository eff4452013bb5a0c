#include <sotto/optim/choco_sgd.h>

#include <utility>

#include <sotto/optim/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {

ChocoSgd::ChocoSgd(AlgorithmSetup setup)
    : node_(AlgorithmId::choco, "choco", std::move(setup)),
      mail_(node_, max_in_degree(node_), node_.compressor().max_bytes(node_.dimension())),
      eta_(node_.consensus_stepsize()),
      public_(node_.dimension()),
      pull_(node_.dimension()),
      half_(node_.dimension()),
      scratch_(node_.dimension()) {}

Peers ChocoSgd::peers() const { return graph_peers(node_, mail_); }

bool ChocoSgd::begin_round(Exchange& /*out*/) {
  node_.begin_round();
  return false;
}

Status ChocoSgd::gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) {
  check(accepts_gradient(), "CHOCO-SGD takes one gradient a round");
  *post = false;
  if (Status status = node_.direction(gradient, half_); !status) {
    return status;
  }
  const Ops& ops = node_.ops();

  // 1. x_i^½ = x_i − γ g_i
  ops.subtract(node_.x(), half_, half_);

  // 2. send q_i = C(x_i^½ − x̂_i)
  ops.subtract(half_, public_, scratch_);
  if (Status status = node_.require_finite(scratch_, "difference to the public copy"); !status) {
    return status;
  }
  const auto payload = node_.encode(scratch_, mail_.outgoing());

  // 3. x̂_i ← x̂_i + q_i
  if (Status status = node_.decode_own(payload, 1, public_); !status) {
    return status;
  }
  mail_.post(graph_plan(node_), payload.size(), out);
  *post = true;
  return {};
}

Status ChocoSgd::frame_arrived(Rank from, std::span<const std::byte> frame) {
  return mail_.accept(from, frame).status();
}

Result<bool> ChocoSgd::exchange_done(Exchange& /*out*/) {
  if (Status status = mail_.require_complete(); !status) {
    return status;
  }
  const Ops& ops = node_.ops();

  // 3. p_i ← p_i + Σ_j (W_ij − 1[i = j]) q_j
  ops.fill(0, scratch_);
  if (Status status = node_.decode_own(mail_.sent(), node_.self_weight() - 1, scratch_); !status) {
    return status;
  }
  if (Status status = decode_neighbours(node_, mail_, scratch_); !status) {
    return status;
  }
  ops.axpy(1, scratch_, pull_);

  // 4. x_i ← x_i^½ + η p_i
  ops.axpy(eta_, pull_, half_);
  mail_.close();
  if (Status status = node_.require_finite(half_, "updated model"); !status) {
    return status;
  }
  ops.copy(half_, node_.x());
  node_.finish_round();
  return false;
}

AlgorithmCounters ChocoSgd::counters() const {
  return {.saturated = node_.saturated(), .bad_frames = mail_.bad_frames()};
}

void ChocoSgd::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(public_, out);
  write_floats(pull_, out);
}

Status ChocoSgd::load(ByteReader& in) {
  if (Status status = node_.load(in); !status) {
    return status;
  }
  if (Status status = read_floats(in, "public copy", public_); !status) {
    return status;
  }
  return read_floats(in, "pull", pull_);
}

}  // namespace sotto
