#include <sotto/sites/core/mixing/secure_mixing.h>

#include <algorithm>
#include <utility>

#include <sotto/optim/state_io.h>

namespace sotto::sites {

SecureMixing::SecureMixing(MixingSetup setup, const SumSetup& sum)
    : setup_(std::move(setup)),
      sum_(sum.rule, sum.name, sum.secret, setup_.parameters.size()),
      bound_(setup_.pull, setup_.kept),
      next_(setup_.parameters.size()),
      given_(setup_.parameters.begin(), setup_.parameters.end()),
      previous_(given_) {
  setup_.step_rule->resize(setup_.layout);
}

void SecureMixing::begin() {
  begun_ = true;
  setup_.ops->copy(setup_.parameters, given_);
  setup_.ops->copy(setup_.parameters, previous_);
}

Status SecureMixing::step(Round step, std::span<const float> gradient) {
  return take_step(setup_, bound_, step, gradient, next_);
}

Status SecureMixing::stretch(float factor) { return stretch_steps(setup_, bound_, factor, next_); }

Status SecureMixing::offer(const RandomKey& key, std::size_t /*degree*/, std::span<Addressee> to) {
  bound_.arrived(setup_.parameters);
  if (Status status = require_finite(*setup_.ops, setup_.parameters, "model"); !status.ok()) {
    return status;
  }
  sum_.open(key.round + 1, setup_.parameters);
  counts_.clipped += sum_.clipped();
  for (Addressee& addressee : to) {
    addressee.payload = sum_.payload_for(addressee.peer);
  }
  return {};
}

Result<TakenIn> SecureMixing::take_in(std::size_t peer, std::span<const std::byte> payload,
                                      const ParcelWeight& /*weight*/) {
  sum_.add(peer, payload);
  return TakenIn{};
}

Status SecureMixing::mix(std::size_t /*degree*/, std::span<MixedPeer> peers) {
  const std::vector<std::size_t> members = sum_.members();
  const SumOutcome outcome = sum_.finish(next_);
  counts_.made += outcome == SumOutcome::summed ? 1 : 0;
  counts_.lost += outcome == SumOutcome::summed ? 0 : 1;
  counts_.unequal += outcome == SumOutcome::unequal ? 1 : 0;
  counts_.lost_in_a_row = outcome == SumOutcome::summed ? 0 : counts_.lost_in_a_row + 1;
  counts_.sites = outcome == SumOutcome::summed ? members.size() + 1 : 1;
  if (outcome != SumOutcome::summed) {
    return {};
  }
  const Ops& ops = *setup_.ops;
  std::swap(given_, previous_);
  ops.copy(next_, given_);
  // The mean's pull is that of |U| parcels, each of which may be as long as the bound.
  const double parts = static_cast<double>(members.size());
  const double distance = distance_between(next_, setup_.parameters);
  const double one = distance * (parts + 1) / parts;
  const PullVerdict verdict = bound_.at(length_of(setup_.parameters)).judge(one);
  bound_.pulled(0, one);  // of all together
  ops.subtract(next_, setup_.parameters, next_);
  ops.axpy(static_cast<float>(static_cast<double>(setup_.consensus_stepsize) * verdict.part), next_,
           setup_.parameters);
  for (MixedPeer& peer : peers) {
    if (std::ranges::find(members, peer.peer) != members.end()) {
      peer.influence = {
          .moved = static_cast<double>(setup_.consensus_stepsize) * verdict.part * distance / parts,
          .cut = verdict.cut ? 1U : 0U};
    }
  }
  return {};
}

Status SecureMixing::put_back() {
  bound_.start_over();
  setup_.ops->copy(previous_, given_);  // the mean may be what has spoiled the model
  return snapshot_.restore(setup_.parameters, *setup_.step_rule);
}

void SecureMixing::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint8_t>(begun_));
  write_floats(setup_.parameters, out);
  write_floats(given_, out);
  bound_.save(out);
  setup_.step_rule->save(out);
}

Status SecureMixing::load(ByteReader& in) {
  const auto begun = in.read<std::uint8_t>();
  if (in.failed() || begun > 1) {
    return {Fault::malformed, "checkpoint of a site that has neither begun nor not begun"};
  }
  begun_ = begun == 1;
  Status status = read_floats(in, "model", setup_.parameters);
  status = status.ok() ? read_floats(in, "mean", given_) : status;
  previous_ = given_;
  status = status.ok() ? bound_.load(in) : status;
  return status.ok() ? setup_.step_rule->load(in) : status;
}

}  // namespace sotto::sites
