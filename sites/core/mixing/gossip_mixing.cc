#include <sotto/sites/core/mixing/gossip_mixing.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <sotto/optim/state_io.h>
#include <sotto/sites/core/pieces.h>
#include <sotto/sites/core/places.h>

namespace sotto::sites {
namespace {

/// W_ij
float weight(std::size_t own_degree, std::size_t degree) {
  return static_cast<float>(1.0 / (1.0 + static_cast<double>(std::max(own_degree, degree))));
}

}  // namespace

GossipMixing::GossipMixing(MixingSetup setup, const std::string& rule)
    : setup_(std::move(setup)),
      bound_(setup_.pull, setup_.kept),
      scratch_(setup_.parameters.size()),
      next_(setup_.parameters.size()),
      pieces_(2 * std::min(setup_.ops->piece(), setup_.parameters.size())) {
  setup_.step_rule->resize(setup_.layout);
  own_.model.resize(setup_.parameters.size());
  if (!rule.empty()) {
    robust_.emplace(rule, setup_.parameters, *setup_.ops);
  }
}

std::size_t GossipMixing::max_payload() const {
  const std::size_t d = setup_.parameters.size();
  return CopyHeader::kBytes + std::max(setup_.compressor->max_bytes(d), d * sizeof(float));
}

void GossipMixing::rearrange(std::span<const std::size_t> from) {
  follow_list(replicas_, from);
  bound_.rearrange(from);
  if (robust_) {
    robust_->expect(from.size());
  }
}

void GossipMixing::begin() {
  begun_ = true;
  setup_.ops->copy(setup_.parameters, own_.model);
  own_.begin();
  begin_round();
}

void GossipMixing::begin_round() {
  if (robust_) {
    robust_->begin_round();
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
  const std::size_t most =
      CopyHeader::kBytes + setup_.compressor->max_bytes(setup_.parameters.size());
  std::vector<std::byte> payload = pool_.take(most);
  payload.resize(most);
  const CopyHeader before = own_.before();
  write_copy_header(before, payload);
  const auto bytes = encode_change(key, std::span(payload).subspan(CopyHeader::kBytes));
  if (!bytes.ok()) {
    return bytes.status();
  }
  payload.resize(CopyHeader::kBytes + *bytes);
  const auto encoding = std::span<const std::byte>(payload).subspan(CopyHeader::kBytes);
  std::swap(own_.model, next_);
  own_.changed(before, encoding);
  const Payload change = pool_.share(std::move(payload));
  Payload copy;
  for (Addressee& addressee : to) {
    if (addressee.whole && copy == nullptr) {
      copy = own_.whole();
    }
    addressee.payload = addressee.whole ? copy : change;
  }
  return {};
}

/// C(x − x̂) in `out`, and next ← x̂ + C(x − x̂).
Result<std::size_t> GossipMixing::encode_change(const RandomKey& key, std::span<std::byte> out) {
  const Ops& ops = *setup_.ops;
  const std::span<const float> x = setup_.parameters;
  const std::span<const float> copy = own_.model;
  const auto make = [&](std::size_t first, std::span<float> piece) {
    const auto there = copy.subspan(first, piece.size());
    ops.copy(there, std::span(next_).subspan(first, piece.size()));
    return ops.combine({{1, x.subspan(first, piece.size())}, {-1, there}}, piece);
  };
  const auto bytes = setup_.compressor->encode_prepared(
      {.make = std::cref(make), .reads = {x, copy}, .residual = false, .add_to = next_}, scratch_,
      key, out);
  Status status;
  if (!bytes) {
    ops.subtract(x, copy, scratch_);
    status = require_finite(ops, scratch_, "difference to the public copy");
    status = status.ok() ? Status(Fault::non_finite, "own encoding does not decode") : status;
  } else {
    status = require_finite(ops, next_, "public copy");
  }
  return status.ok() ? Result<std::size_t>(*bytes) : status;
}

Status GossipMixing::check_payload(std::span<const std::byte> payload) const {
  return check_copy_payload(payload, setup_.parameters.size(), max_payload());
}

Result<TakenIn> GossipMixing::take_in(std::size_t peer, std::span<const std::byte> payload,
                                      const ParcelWeight& /*weight*/) {
  PublicCopy& copy = replicas_[peer];
  ByteReader in(payload);
  const CopyHeader header = read_copy_header(in);
  if (header.whole) {
    if (!in.read_into(std::span(next_))) {
      return Status(Fault::malformed, "a public copy that ends early");
    }
    if (Status status = require_finite(*setup_.ops, next_, "public copy"); !status.ok()) {
      return status;
    }
    copy.model = next_;
    copy.came(header);
    return TakenIn{};
  }
  if (!copy.held()) {
    return TakenIn{};  // the whole one is asked for
  }
  const auto encoding = in.take(in.remaining());
  const Ops& ops = *setup_.ops;
  const std::array<Compressor::Term, 1> term = {{{.bytes = encoding}}};
  const auto finite = decode_by_piece(
      *setup_.compressor, term, scratch_, [&](std::size_t first, std::span<const float> sum) {
        return ops.combine({{1, std::span(copy.model).subspan(first, sum.size())}, {1, sum}},
                           std::span(next_).subspan(first, sum.size()));
      });
  if (!finite.ok()) {
    return finite.status();
  }
  if (!*finite) {
    return require_finite(ops, next_, "changed public copy");
  }
  if (header != copy.before()) {
    copy = {};  // it has drifted
    return TakenIn{};
  }
  std::swap(copy.model, next_);
  copy.changed(header, encoding);
  return TakenIn{};
}

Status GossipMixing::mix(std::size_t degree, std::span<MixedPeer> peers) {
  // Neighbours that drive the sum beyond float32 must not end this site: it then keeps its own.
  if (!robust_) {
    const bool finite = average(weigh(degree, peers));
    if (!finite) {
      setup_.ops->copy(next_, setup_.parameters);
    }
    return {};
  }
  withstand(degree, peers);
  if (setup_.ops->count_non_finite(next_).count == 0) {
    setup_.ops->copy(next_, setup_.parameters);
  }
  begin_round();
  return {};
}

Status GossipMixing::move_to(std::span<const float> model) {
  setup_.ops->copy(model, setup_.parameters);
  begin_round();
  return {};
}

std::vector<GossipMixing::Pull> GossipMixing::weigh(std::size_t degree,
                                                    std::span<MixedPeer> peers) {
  std::vector<Pull> pulls;
  const PullReach bound = bound_.at(length_of(setup_.parameters));
  for (MixedPeer& peer : peers) {
    const PublicCopy& copy = replicas_[peer.peer];
    if (!copy.held() || peer.barred || peer.part == 0) {
      continue;
    }
    const double distance = distance_between(copy.model, own_.model);
    bound_.pulled(peer.peer, distance);
    const PullVerdict verdict = bound.judge(distance);
    const double part = verdict.absurd ? 0 : peer.part * verdict.part;
    const float w = weight(degree, peer.degree);
    peer.influence = {.moved = static_cast<double>(setup_.consensus_stepsize * w) * part * distance,
                      .distance = distance,
                      .cut = verdict.cut ? 1U : 0U,
                      .absurd = verdict.absurd};
    pulls.push_back(
        {.to = copy.model, .weight = static_cast<float>(static_cast<double>(w) * part)});
  }
  return pulls;
}

/// x ← x + η Σ w (x̂_j − x̂_i), and next ← x as it was. Whether the new x is finite.
bool GossipMixing::average(const std::vector<Pull>& pulls) {
  const Ops& ops = *setup_.ops;
  return by_piece(ops, next_.size(), [&](std::size_t first, std::size_t count) {
    const auto own = std::span<const float>(own_.model).subspan(first, count);
    const auto difference = std::span(pieces_).first(count);
    const auto sum = std::span(pieces_).last(count);
    ops.fill(0, sum);
    for (const Pull& pull : pulls) {
      ops.subtract(pull.to.subspan(first, count), own, difference);
      ops.axpy(pull.weight, difference, sum);
    }
    const auto x = setup_.parameters.subspan(first, count);
    ops.copy(x, std::span(next_).subspan(first, count));
    return ops.combine({{1, x}, {setup_.consensus_stepsize, sum}}, x);
  });
}

/// The bound holds here, too: a rule withstands liars while they are few, and does not say which
/// models it set aside.
void GossipMixing::withstand(std::size_t degree, std::span<MixedPeer> peers) {
  const std::span<const float> x = setup_.parameters;
  const PullReach bound = bound_.at(length_of(x));
  for (MixedPeer& peer : peers) {
    const PublicCopy& copy = replicas_[peer.peer];
    if (!copy.held() || peer.barred) {
      continue;
    }
    const double distance = distance_between(copy.model, x);
    const PullVerdict verdict = bound.judge(distance);
    if (peer.part > 0) {  // told once for each parcel: a copy stays until the next one
      bound_.pulled(peer.peer, distance);
      peer.influence = {
          .distance = distance, .cut = verdict.cut ? 1U : 0U, .absurd = verdict.absurd};
    }
    if (verdict.absurd) {
      continue;
    }
    const float w = weight(degree, peer.degree);
    peer.influence.moved = static_cast<double>(w) * std::min(distance, bound.reach);
    robust_->add(peer.peer, copy.model, bound.reach / distance, w);
  }
  robust_->average(scratch_, next_);
}

Status GossipMixing::put_back() {
  if (Status status = snapshot_.restore(setup_.parameters, *setup_.step_rule); !status.ok()) {
    return status;
  }
  begin_round();
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
    status = own_.load(in, setup_.parameters.size());
    if (status.ok() && !own_.held()) {
      status = {Fault::malformed, "checkpoint without the own public copy"};
    }
  }
  begin_round();
  status = status.ok() ? bound_.load(in) : status;
  status = status.ok() ? setup_.step_rule->load(in) : status;
  return status.ok() ? setup_.compressor->load(in) : status;
}

void GossipMixing::save_peer(std::size_t peer, ByteBuffer& out) const { replicas_[peer].save(out); }

Status GossipMixing::load_peer(std::size_t peer, ByteReader& in) {
  return replicas_[peer].load(in, setup_.parameters.size());
}

std::span<const float> GossipMixing::public_copy(std::optional<std::size_t> peer) const {
  if (!peer) {
    return begun_ ? std::span<const float>(own_.model) : std::span<const float>();
  }
  return replicas_[*peer].model;
}

std::uint64_t GossipMixing::version(std::optional<std::size_t> peer) const {
  return peer ? replicas_[*peer].version() : own_.version();
}

}  // namespace sotto::sites
