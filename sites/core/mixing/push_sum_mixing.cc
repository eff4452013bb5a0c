#include <sotto/sites/core/mixing/push_sum_mixing.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <sotto/optim/state_io.h>
#include <sotto/sites/core/mixing/push_sum_share.h>

namespace sotto::sites {
namespace {

/// A return by less than this is left out: sums that differ from 1 by rounding stay.
constexpr double kNothing = 0x1p-20;

}  // namespace

PushSumMixing::PushSumMixing(MixingSetup setup, const MassSetup& mass)
    : setup_(std::move(setup)),
      rule_(mass.rule),
      cap_(mass.cap),
      bound_(setup_.pull, setup_.kept),
      model_(setup_.parameters, *setup_.ops),
      giving_(model_, *setup_.compressor),
      taking_(model_, bound_, *setup_.compressor, rule_, setup_.consensus_stepsize) {
  setup_.step_rule->resize(setup_.layout);
}

std::size_t PushSumMixing::max_payload() const {
  return ShareHeader::kBytes +
         std::max(setup_.compressor->max_bytes(model_.size()), model_.size() * sizeof(float));
}

void PushSumMixing::rearrange(std::span<const std::size_t> from) {
  bound_.rearrange(from);
  taking_.rearrange(from);
}

void PushSumMixing::begin() {
  model_.begin();
  giving_.clear();
}

void PushSumMixing::give_up() {
  model_.clear();
  giving_.clear();
}

LastParcel PushSumMixing::hand_over() {
  // More than a parcel may hold is taken away, which leaves the model as it is.
  const double mass = std::min(model_.mass(), rule_.parcel);
  const std::span<float> all = model_.all();
  if (mass < model_.mass()) {
    setup_.ops->scale(static_cast<float>(mass / model_.mass()), all);
    balance_.lowered += model_.mass() - mass;
  }
  ByteBuffer payload;
  ShareHeader::of_last(mass).write(payload);
  payload.write_span(std::span<const float>(all));
  give_up();
  return {.payload = std::make_shared<const std::vector<std::byte>>(std::move(payload).take()),
          .mass = mass};
}

Status PushSumMixing::take_back(std::span<const std::byte> payload) {
  ByteReader in(payload.subspan(ShareHeader::kBytes));
  return model_.take_over(in, read_header(payload).mass);
}

Status PushSumMixing::step(Round step, std::span<const float> gradient) {
  const auto direction = direction_of(setup_, step, gradient, model_.room());
  if (!direction.ok()) {
    return direction.status();
  }
  const auto moved = model_.step(*direction);
  if (!moved.ok()) {
    return moved.status();
  }
  bound_.stepped_from(model_.values(), *moved);
  return {};
}

Status PushSumMixing::stretch(float factor) {
  bound_.stretched();
  return model_.move_by(factor - 1, setup_.parameters, bound_.from());
}

double PushSumMixing::share_of(double fair) const {
  const double heaviest = most_in_parcel(rule_, setup_.consensus_stepsize);
  if (fair * model_.mass() <= heaviest) {
    return fair;
  }
  // A float32, as receivers use it, and rounded down: no parcel is beyond what one may hold.
  const double most = heaviest / model_.mass();
  const auto share = static_cast<float>(most);
  return static_cast<double>(share <= most ? share : std::nextafter(share, 0.0F));
}

Status PushSumMixing::offer(const RandomKey& key, std::size_t degree, std::span<Addressee> to) {
  bound_.arrived(setup_.parameters);
  taking_.note_given({}, 0, {});
  if (to.empty()) {
    return {};
  }
  const auto fair = static_cast<float>(1.0 / static_cast<double>(1 + degree));
  const double share = share_of(static_cast<double>(setup_.consensus_stepsize * fair));
  const auto receivers = static_cast<double>(
      std::ranges::count_if(to, [](const Addressee& one) { return !one.observer; }));
  const double mass = share * model_.mass();
  const auto payload = giving_.make(key, {.share = share, .mass = mass}, share * receivers);
  if (!payload.ok()) {
    return payload.status();
  }
  model_.gave(mass * receivers);
  for (Addressee& addressee : to) {
    addressee.payload = *payload;
    addressee.mass = addressee.observer ? 0 : mass;
  }
  taking_.note_given(*payload, mass, to);
  return {};
}

Status PushSumMixing::check_payload(std::span<const std::byte> payload) const {
  return check_share(payload,
                     {.dimension = model_.size(), .most_bytes = max_payload(), .most_mass = cap_});
}

Result<TakenIn> PushSumMixing::take_in(std::size_t peer, std::span<const std::byte> payload,
                                       const ParcelWeight& weight) {
  auto taken = taking_.take_in(peer, payload, weight);
  if (taken.ok()) {
    balance_.lowered += taken->mass - taken->counted;
  }
  return taken;
}

Status PushSumMixing::mix(std::size_t /*degree*/, std::span<MixedPeer> /*peers*/) {
  const double massless = taking_.end_round();
  Status status = model_.fold();
  if (status.ok() && massless > 0) {
    status = model_.rescale(model_.mass() - massless);
  }
  return status.ok() ? give_back() : status;
}

/// The mass comes back towards 1; z stays, as x goes along. What was withheld from parcels stays as
/// it is: it is owed to others in their measure, and what grows in every round would not be repaid.
Status PushSumMixing::give_back() {
  const double mass = model_.mass();
  const double next = std::clamp(mass + rule_.back * (1 - mass), rule_.least, rule_.most);
  if (std::abs(next / mass - 1) < kNothing) {
    return {};
  }
  const double more = next - mass;
  (more > 0 ? balance_.raised : balance_.lowered) += std::abs(more);
  // What a compressor withheld from parcels is left here, and where little else is left it makes
  // most of x: new mass comes at the model of before, or that would grow without end.
  const bool withholds = more > 0 && setup_.kept.has_value();
  return withholds ? model_.fill_up(next, snapshot_.model()) : model_.rescale(next);
}

Status PushSumMixing::move_to(std::span<const float> model) {
  return model_.move_by(1, model, setup_.parameters);
}

Status PushSumMixing::put_back() {
  if (Status status = snapshot_.restore(setup_.parameters, *setup_.step_rule); !status.ok()) {
    return status;
  }
  model_.follow_z();
  giving_.clear();
  bound_.start_over();
  return {};
}

void PushSumMixing::save(ByteBuffer& out) const {
  out.write(model_.mass());
  out.write(balance_.raised);
  out.write(balance_.lowered);
  bound_.save(out);
  if (model_.mass() > 0) {
    model_.save(out);
    giving_.save(out);
  } else {
    write_floats(setup_.parameters, out);  // with mass, z follows
  }
  setup_.step_rule->save(out);
  setup_.compressor->save(out);
}

Status PushSumMixing::load(ByteReader& in) {
  const auto mass = in.read<double>();
  balance_.raised = in.read<double>();
  balance_.lowered = in.read<double>();
  const auto sound = [](double sum) { return std::isfinite(sum) && sum >= 0; };
  // A site that has not begun, or gave up, has no mass.
  if (in.failed() || !(mass == 0 || (mass >= kLeastShared && mass <= cap_)) ||
      !sound(balance_.raised) || !sound(balance_.lowered)) {
    return {Fault::malformed, "checkpoint has a mass that cannot be"};
  }
  Status status = bound_.load(in);
  if (!status.ok()) {
    return status;
  }
  if (mass > 0) {
    status = model_.load(in, mass);
    status = status.ok() ? giving_.load(in) : status;
    status = status.ok() ? model_.fold() : status;
  } else {
    status = read_floats(in, "model", setup_.parameters);
  }
  status = status.ok() ? setup_.step_rule->load(in) : status;
  return status.ok() ? setup_.compressor->load(in) : status;
}

}  // namespace sotto::sites
