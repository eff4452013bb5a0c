#include <sotto/optim/apm_squeeze.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/compress/none.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

Adam& adam_of(const LocalNode& node) {
  auto* adam = dynamic_cast<Adam*>(&node.step_rule());
  check(adam != nullptr, "no other step rule is admitted");
  return *adam;
}

std::vector<Edge> all_but(const LocalNode& node) {
  std::vector<Edge> edges;
  for (Rank peer = 0; peer < node.nodes(); ++peer) {
    if (peer != node.rank()) {
      edges.push_back({peer, 1});
    }
  }
  return edges;
}

std::size_t longest_payload(const LocalNode& node, const Compressor& exact) {
  const std::size_t elements = longest_chunk(node.dimension(), node.nodes());
  return std::max(node.compressor().max_bytes(elements), exact.max_bytes(elements));
}

}  // namespace

ApmSqueeze::ApmSqueeze(AlgorithmId id, AlgorithmSetup setup)
    : node_(id, id == AlgorithmId::apmsqueeze ? "apmsqueeze" : "onebit-adam", std::move(setup)),
      adam_(adam_of(node_)),
      exact_(make_none(node_.ops())),
      others_(all_but(node_)),
      elements_(others_.size()),
      parcels_(others_.size()),
      mail_(node_, others_.size(), longest_payload(node_, *exact_),
            std::max<std::size_t>(1, others_.size())),
      own_chunk_(mail_.outgoing().size()),
      error_(node_.dimension()),
      chunk_error_(chunk(node_.rank()).size),
      mean_(chunk_error_.size()),
      work_(node_.dimension()),
      direction_(node_.dimension()),
      freeze_round_(node_.freeze_step().value_or(kNotYet)) {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    elements_[i] = chunk(others_[i].peer).size;
  }
}

Peers ApmSqueeze::peers() const {
  Peers peers{.to = {}, .from = {}, .max_frame_bytes = mail_.max_frame_bytes()};
  for (const Edge& other : others_) {
    peers.to.push_back(other.peer);
  }
  peers.from = peers.to;
  return peers;
}

std::size_t ApmSqueeze::edge(Rank peer) const {
  return static_cast<std::size_t>(peer < node_.rank() ? peer : peer - 1);
}

ExchangePlan ApmSqueeze::plan(std::uint16_t phase) const {
  ExchangePlan plan{.tag = {.round = node_.round(), .phase = phase},
                    .compressor = codec().wire_id(),
                    .to = others_,
                    .from = others_,
                    .elements_out = mean_.size(),
                    .elements_in = mean_.size()};
  if (phase == kGather) {
    plan.elements_by_sender = elements_;
  }
  return plan;
}

void ApmSqueeze::mute(std::span<float> values, std::size_t offset) const {
  const auto v = variance().subspan(offset, values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = v[k] == 0 ? 0 : values[k];
  }
}

std::span<const std::byte> ApmSqueeze::encode(std::span<float> v, std::span<std::byte> out,
                                              std::uint32_t bucket) {
  return frozen() ? node_.encode_residual(v, out, bucket) : out.first(exact_->encode(v, {}, out));
}

Status ApmSqueeze::decode(Rank from, std::span<float> y) {
  const bool own = from == node_.rank();
  const Status decoded = codec().decode_add(own ? own_payload_ : mail_.payload(edge(from)), 1, y);
  if (decoded) {
    return {};
  }
  return own ? node_.fault(decoded.fault(), "own encoding: " + decoded.message())
             : mail_.refuse(edge(from), decoded);
}

bool ApmSqueeze::begin_round(Exchange& /*out*/) {
  node_.begin_round();
  return false;
}

Status ApmSqueeze::gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) {
  check(accepts_gradient(), "APMSqueeze takes one gradient a round");
  check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
  *post = false;
  if (Status status = node_.require_finite(gradient, "gradient"); !status) {
    return status;
  }
  if (frozen()) {
    adam_.momentum_after(node_.x(), gradient, work_);
    node_.ops().axpy(1, error_, work_);
    mute(work_, 0);
    if (Status status = node_.require_finite(work_, "compensated momentum"); !status) {
      return status;
    }
  } else {
    node_.ops().copy(gradient, work_);
  }
  for (Rank owner = 0; owner < node_.nodes(); ++owner) {
    const auto part = chunk(owner).of(std::span(work_));
    const auto bucket = static_cast<std::uint32_t>(owner);
    if (owner == node_.rank()) {
      own_payload_ = encode(part, own_chunk_, bucket);
    } else {
      const auto payload = encode(part, mail_.outgoing(edge(owner)), bucket);
      parcels_[edge(owner)] = {.elements = part.size(), .payload_bytes = payload.size()};
    }
  }
  if (frozen()) {
    std::swap(error_, work_);
  }
  mail_.post_each(plan(kScatter), parcels_, out);
  *post = true;
  return {};
}

Status ApmSqueeze::frame_arrived(Rank from, std::span<const std::byte> frame) {
  return mail_.accept(from, frame).status();
}

Result<bool> ApmSqueeze::exchange_done(Exchange& out) {
  if (Status status = mail_.require_complete(); !status) {
    return status;
  }
  const bool gathered = mail_.phase() == kGather;
  if (Status status = gathered ? step() : average(out); !status) {
    return status;
  }
  return !gathered;
}

Status ApmSqueeze::average(Exchange& out) {
  const Ops& ops = node_.ops();
  ops.fill(0, mean_);
  for (Rank from = 0; from < node_.nodes(); ++from) {
    if (Status status = decode(from, mean_); !status) {
      return status;
    }
  }
  mail_.close();
  ops.scale(1.0F / static_cast<float>(node_.nodes()), mean_);
  if (frozen()) {
    ops.axpy(1, chunk_error_, mean_);
    mute(mean_, chunk(node_.rank()).offset);
  }
  if (Status status = node_.require_finite(mean_, "mean over all nodes"); !status) {
    return status;
  }
  own_payload_ = encode(mean_, mail_.outgoing(), static_cast<std::uint32_t>(node_.nodes()));
  if (frozen()) {
    std::swap(chunk_error_, mean_);
  }
  mail_.post(plan(kGather), own_payload_.size(), out);
  return {};
}

Status ApmSqueeze::step() {
  const Ops& ops = node_.ops();
  ops.fill(0, work_);
  for (Rank owner = 0; owner < node_.nodes(); ++owner) {
    if (Status status = decode(owner, chunk(owner).of(std::span(work_))); !status) {
      return status;
    }
  }
  if (frozen()) {
    mute(work_, 0);
    ops.copy(work_, adam_.momentum());
    adam_.frozen_direction(node_.round(), direction_);
  } else {
    adam_.direction(node_.round(), node_.x(), work_, direction_);
  }
  ops.subtract(node_.x(), direction_, direction_);
  if (Status status = node_.require_finite(direction_, "updated model"); !status) {
    return status;
  }
  ops.copy(direction_, node_.x());
  mail_.close();
  node_.finish_round();
  watch_variance();
  return {};
}

void ApmSqueeze::watch_variance() {
  constexpr double kStable = 0.96;
  if (freeze_round_ != kNotYet || node_.round() % adam_.variance_memory() != 0) {
    return;
  }
  const double norm = adam_.variance_norm();
  if (last_norm_ > 0 && norm >= kStable * last_norm_) {
    freeze_round_ = node_.round();
  }
  last_norm_ = norm;
}

AlgorithmCounters ApmSqueeze::counters() const {
  return {.saturated = node_.saturated(), .bad_frames = mail_.bad_frames()};
}

void ApmSqueeze::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(freeze_round_);
  out.write(last_norm_);
  write_floats(error_, out);
  write_floats(chunk_error_, out);
}

Status ApmSqueeze::load(ByteReader& in) {
  if (Status status = node_.load(in); !status) {
    return status;
  }
  const auto saved_freeze = in.read<Round>();
  last_norm_ = in.read<double>();
  if (in.failed() || saved_freeze == 0 || !std::isfinite(last_norm_) || last_norm_ < 0) {
    return {Fault::malformed, "checkpoint without the state of the variance"};
  }
  if (node_.freeze_step() && saved_freeze != *node_.freeze_step()) {
    return {Fault::malformed,
            fmt::format(
                "checkpoint of a run that freezes the variance {} where it is to be after "
                "round {}",
                saved_freeze == kNotYet ? "by itself" : fmt::format("after round {}", saved_freeze),
                *node_.freeze_step())};
  }
  freeze_round_ = saved_freeze;
  if (Status status = read_floats(in, "error", error_); !status) {
    return status;
  }
  return read_floats(in, "error of the chunk", chunk_error_);
}

}  // namespace sotto
