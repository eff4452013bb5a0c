#include <sotto/optim/algorithms/choco_sgd.h>

#include <utility>

#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {

ChocoSgd::ChocoSgd(AlgorithmSetup setup)
    : node_(AlgorithmId::choco, "choco", std::move(setup)),
      mail_(node_.topology().time_varying()
                ? ReplicaExchange::make_mailbox(node_)
                : Mailbox(node_, max_in_degree(node_),
                          node_.compressor().max_bytes(node_.dimension()))),
      eta_(node_.consensus_stepsize()),
      public_(node_.dimension()),
      pull_(node_.dimension()),
      half_(node_.dimension()),
      scratch_(node_.dimension()) {
  if (node_.topology().time_varying()) {
    copies_.emplace(node_, mail_, public_, /*lead=*/0);
  }
}

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
  Update update;
  if (copies_) {
    update = copies_->encode(public_, scratch_);
  } else {
    update.encoding = node_.encode(scratch_, mail_.outgoing());
  }

  // 3. x̂_i ← x̂_i + q_i
  if (Status status = node_.decode_own(update.encoding, 1, public_); !status) {
    return status;
  }
  if (copies_) {
    copies_->post(update, public_, out);
  } else {
    mail_.post(graph_plan(node_), update.encoding.size(), out);
  }
  *post = true;
  return {};
}

Status ChocoSgd::frame_arrived(Rank from, std::span<const std::byte> frame) {
  if (!copies_) {
    return mail_.accept(from, frame).status();
  }
  const auto arrival = copies_->open(from, frame);
  if (!arrival || arrival->replica == nullptr) {
    return arrival.status();
  }
  // 3. x̂_j ← x̂_j + q_j
  return copies_->applied(*arrival, node_.compressor().decode_add(arrival->update.encoding, 1,
                                                                  arrival->replica->model));
}

Result<bool> ChocoSgd::exchange_done(Exchange& /*out*/) {
  if (Status status = mail_.require_complete(); !status) {
    return status;
  }
  if (copies_) {
    sum_pull();
  } else if (Status status = advance_pull(); !status) {
    return status;
  }

  // 4. x_i ← x_i^½ + η p_i
  node_.ops().axpy(eta_, pull_, half_);
  mail_.close();
  if (Status status = node_.require_finite(half_, "updated model"); !status) {
    return status;
  }
  node_.ops().copy(half_, node_.x());
  node_.finish_round();
  return false;
}

Status ChocoSgd::advance_pull() {
  const Ops& ops = node_.ops();
  ops.fill(0, scratch_);
  if (Status status = node_.decode_own(mail_.sent(), node_.self_weight() - 1, scratch_); !status) {
    return status;
  }
  if (Status status = decode_neighbours(node_, mail_, scratch_); !status) {
    return status;
  }
  ops.axpy(1, scratch_, pull_);
  return {};
}

void ChocoSgd::sum_pull() {
  const Ops& ops = node_.ops();
  ops.fill(0, pull_);
  for (const Replica& copy : copies()) {
    ops.subtract(ReplicaExchange::value(copy, public_), public_, scratch_);
    ops.axpy(copy.weight, scratch_, pull_);
  }
}

AlgorithmCounters ChocoSgd::counters() const {
  return {.saturated = node_.saturated(),
          .bad_frames = mail_.bad_frames(),
          .drifted = copies_ ? copies_->drifted() : 0};
}

void ChocoSgd::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(public_, out);
  if (copies_) {
    copies_->save(out);
  } else {
    write_floats(pull_, out);
  }
}

Status ChocoSgd::load(ByteReader& in) {
  if (Status status = node_.load(in); !status) {
    return status;
  }
  if (Status status = read_floats(in, "public copy", public_); !status) {
    return status;
  }
  return copies_ ? copies_->load(in) : read_floats(in, "pull", pull_);
}

}  // namespace sotto
