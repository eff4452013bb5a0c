#include <sotto/sites/core/gossip_mixing.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>

namespace sotto::sites {
namespace {

constexpr std::uint64_t kWhole = 1;
constexpr std::size_t kHeaderBytes = 2 * sizeof(std::uint64_t);

/// W_ij
float weight(std::size_t own_degree, std::size_t degree) {
  return static_cast<float>(1.0 / (1.0 + static_cast<double>(std::max(own_degree, degree))));
}

}  // namespace

void GossipMixing::Copy::advance(std::uint64_t before, std::span<const std::byte> encoding) {
  version.advance({.version = before, .encoding = encoding, .payload_bytes = 0});
  ++changes;
}

void GossipMixing::Copy::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint8_t>(held()));
  if (held()) {
    out.write(version.chain());
    out.write(changes);
    write_floats(model, out);
  }
}

Status GossipMixing::Copy::load(ByteReader& in) {
  version = ModelVersion(in.read<std::uint64_t>());
  changes = in.read<std::uint64_t>();
  if (in.failed() || (version.chain() & kWhole) != 0 || changes > kMostCount) {
    return {Fault::malformed, "checkpoint has a public copy that cannot be"};
  }
  return read_floats(in, "public copy", model);
}

GossipMixing::GossipMixing(MixingSetup setup)
    : setup_(std::move(setup)),
      bound_(setup_.pull, setup_.kept),
      scratch_(setup_.parameters.size()),
      next_(setup_.parameters.size()) {
  setup_.step_rule->resize(setup_.layout);
  own_.model.resize(setup_.parameters.size());
  if (!setup_.rule.empty()) {
    start_.resize(setup_.parameters.size());
    rearrange({});  // throws for a rule that is none
  }
}

std::size_t GossipMixing::max_payload() const {
  const std::size_t d = setup_.parameters.size();
  return kHeaderBytes + std::max(setup_.compressor->max_bytes(d), d * sizeof(float));
}

void GossipMixing::rearrange(std::span<const std::size_t> from) {
  std::vector<Copy> next(from.size());
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (from[k] != kNobody) {
      next[k] = std::move(replicas_[from[k]]);
    }
  }
  replicas_ = std::move(next);
  if (!setup_.rule.empty()) {
    const std::size_t d = setup_.parameters.size();
    rule_ = make_aggregation(setup_.rule, replicas_.size(), d, *setup_.ops);
    received_.assign(replicas_.size(), std::vector<float>(d));
  }
}

void GossipMixing::begin() {
  begun_ = true;
  setup_.ops->copy(setup_.parameters, own_.model);
  own_.version = {};
  own_.changes = 0;
  if (rule_) {
    setup_.ops->copy(setup_.parameters, start_);
  }
}

void GossipMixing::give_up() { begun_ = false; }

void GossipMixing::forget(std::size_t peer) { replicas_[peer] = {}; }

Status GossipMixing::step(Round step, std::span<const float> gradient) {
  return take_step(setup_, bound_, step, gradient, next_);
}

Status GossipMixing::stretch(float factor) { return stretch_steps(setup_, bound_, factor, next_); }

Status GossipMixing::offer(const RandomKey& key, std::size_t /*degree*/, std::span<Addressee> to) {
  bound_.arrived(setup_.parameters);
  if (to.empty()) {
    return {};  // as long as nobody hears of it, x̂ stays, and nobody falls behind
  }
  const Ops& ops = *setup_.ops;
  ops.subtract(setup_.parameters, own_.model, scratch_);
  if (Status status = require_finite(ops, scratch_, "difference to the public copy");
      !status.ok()) {
    return status;
  }
  std::vector<std::byte> payload(max_payload());
  const std::uint64_t before = own_.before();
  ByteWriter header(payload);
  header.write(before);
  header.write(own_.changes);
  payload.resize(kHeaderBytes + setup_.compressor->encode(
                                    scratch_, key, std::span(payload).subspan(kHeaderBytes)));
  const auto encoding = std::span<const std::byte>(payload).subspan(kHeaderBytes);
  ops.copy(own_.model, next_);
  if (Status status = setup_.compressor->decode_add(encoding, 1, next_); !status.ok()) {
    return status.with_context("own encoding");
  }
  if (Status status = require_finite(ops, next_, "public copy"); !status.ok()) {
    return status;
  }
  std::swap(own_.model, next_);
  own_.advance(before, encoding);
  const Payload change = std::make_shared<const std::vector<std::byte>>(std::move(payload));
  Payload copy;
  for (Addressee& addressee : to) {
    if (addressee.whole && copy == nullptr) {
      copy = whole();
    }
    addressee.payload = addressee.whole ? copy : change;
  }
  return {};
}

Payload GossipMixing::whole() const {
  const auto model = std::as_bytes(std::span(own_.model));
  std::vector<std::byte> payload(kHeaderBytes + model.size());
  ByteWriter out(payload);
  out.write(own_.version.chain() | kWhole);
  out.write(own_.changes);
  out.write_bytes(model);
  return std::make_shared<const std::vector<std::byte>>(std::move(payload));
}

Status GossipMixing::check_payload(std::span<const std::byte> payload) const {
  ByteReader in(payload);
  const auto version = in.read<std::uint64_t>();
  const auto changes = in.read<std::uint64_t>();
  const bool is_whole = (version & kWhole) != 0;
  const std::size_t copy = setup_.parameters.size_bytes();
  if (in.failed() || payload.size() > max_payload() || (is_whole && in.remaining() != copy)) {
    return {Fault::malformed, fmt::format("a public copy or change of {} bytes", payload.size())};
  }
  if (changes > kMostCount) {
    return {Fault::malformed, fmt::format("a public copy after {} changes", changes)};
  }
  return {};
}

Result<TakenIn> GossipMixing::take_in(std::size_t peer, std::span<const std::byte> payload,
                                      bool /*barred*/) {
  Copy& copy = replicas_[peer];
  ByteReader in(payload);
  const auto version = in.read<std::uint64_t>();
  const auto changes = in.read<std::uint64_t>();
  if ((version & kWhole) != 0) {
    if (!in.read_into(std::span(next_))) {
      return Status(Fault::malformed, "a public copy that ends early");
    }
    if (Status status = require_finite(*setup_.ops, next_, "public copy"); !status.ok()) {
      return status;
    }
    copy.model = next_;
    copy.version = ModelVersion(version & ~kWhole);
    copy.changes = changes;
    return TakenIn{};
  }
  if (!copy.held()) {
    return TakenIn{};  // the whole one is asked for
  }
  const auto encoding = in.take(in.remaining());
  setup_.ops->copy(copy.model, next_);
  if (Status status = setup_.compressor->decode_add(encoding, 1, next_); !status.ok()) {
    return status;
  }
  if (Status status = require_finite(*setup_.ops, next_, "changed public copy"); !status.ok()) {
    return status;
  }
  if (changes != copy.changes || version != copy.before()) {
    copy = {};  // it has drifted
    return TakenIn{};
  }
  std::swap(copy.model, next_);
  copy.advance(version, encoding);
  return TakenIn{};
}

Status GossipMixing::mix(std::size_t degree, std::span<MixedPeer> peers) {
  if (rule_) {
    withstand(degree, peers);
  } else {
    average(degree, peers);
  }
  // Neighbours that drive the sum beyond float32 must not end this site: it then keeps its own.
  if (setup_.ops->count_non_finite(next_).count == 0) {
    setup_.ops->copy(next_, setup_.parameters);
  }
  if (rule_) {
    setup_.ops->copy(setup_.parameters, start_);
  }
  return {};
}

Status GossipMixing::move_to(std::span<const float> model) {
  setup_.ops->copy(model, setup_.parameters);
  if (rule_) {
    setup_.ops->copy(setup_.parameters, start_);
  }
  return {};
}

void GossipMixing::average(std::size_t degree, std::span<MixedPeer> peers) {
  const Ops& ops = *setup_.ops;
  std::vector<float> pull(next_.size());
  const double length = length_of(setup_.parameters);
  const double longest = bound_.longest(length);
  for (MixedPeer& peer : peers) {
    const Copy& copy = replicas_[peer.peer];
    if (!copy.held() || peer.barred || peer.part == 0) {
      continue;
    }
    const double distance = distance_between(copy.model, own_.model);
    bound_.pulled(distance);
    const bool cut = distance > longest;
    const bool absurd = PullBound::absurd(distance, longest, length);
    const double part = absurd ? 0 : peer.part * (cut ? longest / distance : 1);
    const float w = weight(degree, peer.degree);
    peer.influence = {.moved = static_cast<double>(setup_.consensus_stepsize * w) * part * distance,
                      .cut = cut ? 1U : 0U,
                      .absurd = absurd};
    ops.subtract(copy.model, own_.model, scratch_);
    ops.axpy(static_cast<float>(static_cast<double>(w) * part), scratch_, pull);
  }
  ops.copy(setup_.parameters, next_);
  ops.axpy(setup_.consensus_stepsize, pull, next_);
}

void GossipMixing::withstand(std::size_t degree, std::span<MixedPeer> peers) {
  const Ops& ops = *setup_.ops;
  ops.subtract(setup_.parameters, start_, scratch_);
  std::vector<ReceivedModel> models;
  for (MixedPeer& peer : peers) {
    const Copy& copy = replicas_[peer.peer];
    if (copy.held() && !peer.barred) {
      peer.influence.moved = static_cast<double>(weight(degree, peer.degree)) *
                             distance_between(copy.model, setup_.parameters);
      std::vector<float>& model = received_[peer.peer];
      ops.copy(copy.model, model);
      models.push_back({model, weight(degree, peer.degree)});
    }
  }
  rule_->aggregate({.own = setup_.parameters, .step = scratch_, .received = models}, next_);
}

Status GossipMixing::put_back() {
  if (Status status = snapshot_.restore(setup_.parameters, *setup_.step_rule); !status.ok()) {
    return status;
  }
  if (rule_) {
    setup_.ops->copy(setup_.parameters, start_);
  }
  bound_.start_over();
  return {};
}

void GossipMixing::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint8_t>(begun_));
  write_floats(setup_.parameters, out);
  if (begun_) {
    own_.save(out);
  }
  bound_.save(out);
  setup_.step_rule->save(out);
  setup_.compressor->save(out);
}

Status GossipMixing::load(ByteReader& in) {
  const auto begun = in.read<std::uint8_t>();
  if (in.failed() || begun > 1) {
    return {Fault::malformed, "checkpoint of a site that has neither begun nor not begun"};
  }
  begun_ = begun == 1;
  Status status = read_floats(in, "model", setup_.parameters);
  if (status.ok() && begun_) {
    const auto held = in.read<std::uint8_t>();
    status = held == 1 ? own_.load(in)
                       : Status(Fault::malformed, "checkpoint without the own public copy");
  }
  if (rule_) {
    setup_.ops->copy(setup_.parameters, start_);
  }
  status = status.ok() ? bound_.load(in) : status;
  status = status.ok() ? setup_.step_rule->load(in) : status;
  return status.ok() ? setup_.compressor->load(in) : status;
}

void GossipMixing::save_peer(std::size_t peer, ByteBuffer& out) const { replicas_[peer].save(out); }

Status GossipMixing::load_peer(std::size_t peer, ByteReader& in) {
  const auto held = in.read<std::uint8_t>();
  if (in.failed() || held > 1) {
    return {Fault::malformed, "checkpoint has a public copy that cannot be"};
  }
  Copy& copy = replicas_[peer];
  copy = {};
  if (held == 1) {
    copy.model.resize(setup_.parameters.size());
    return copy.load(in);
  }
  return {};
}

std::span<const float> GossipMixing::public_copy(std::optional<std::size_t> peer) const {
  if (!peer) {
    return begun_ ? std::span<const float>(own_.model) : std::span<const float>();
  }
  return replicas_[*peer].model;
}

std::uint64_t GossipMixing::version(std::optional<std::size_t> peer) const {
  return peer ? replicas_[*peer].version.chain() : own_.version.chain();
}

}  // namespace sotto::sites
