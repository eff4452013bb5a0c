#include <sotto/sites/core/push_sum_mixing.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>

namespace sotto::sites {
namespace {

/// Below this, float32 loses what is shared.
constexpr double kLeast = 0x1p-64;
/// In place of a share, of a parcel that is all that its sender had.
constexpr double kShareOfLast = 2;
constexpr std::size_t kPushSumHeaderBytes = 2 * sizeof(double);

/// φ: how much longer than γ a step of z may be, and how much shorter.
constexpr double kShortest = 0.125;
constexpr double kLongest = 4;
/// A return by less than this is left out: sums that differ from 1 by rounding stay.
constexpr double kNothing = 0x1p-20;

struct Header {
  double share = 0;
  double mass = 0;
};

/// ω φ, what a step of x is multiplied by; exactly 1 where the bounds of φ are not reached.
double step_scale(double mass) {
  const double wanted = 1 / mass;
  const double phi = std::clamp(wanted, kShortest, kLongest);
  return phi == wanted ? 1 : mass * phi;
}

Header read_header(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Header header;
  header.share = in.read<double>();
  header.mass = in.read<double>();
  return header;
}

/// Whether the parcel is all that its sender had, who leaves: x as it is, and no share of it.
bool is_last(const Header& header) { return header.share == kShareOfLast; }

}  // namespace

PushSumMixing::PushSumMixing(MixingSetup setup)
    : setup_(std::move(setup)),
      bound_(setup_.pull, setup_.kept),
      x_(setup_.parameters.size()),
      pull_(x_.size()),
      error_(x_.size()),
      v_(x_.size()),
      next_(x_.size()) {
  setup_.step_rule->resize(setup_.layout);
}

std::size_t PushSumMixing::max_payload() const {
  return kPushSumHeaderBytes +
         std::max(setup_.compressor->max_bytes(x_.size()), x_.size() * sizeof(float));
}

void PushSumMixing::begin() {
  mass_ = 1;
  setup_.ops->copy(setup_.parameters, x_);
  setup_.ops->fill(0, pull_);
  setup_.ops->fill(0, error_);
}

void PushSumMixing::give_up() {
  mass_ = 0;
  setup_.ops->fill(0, x_);
  setup_.ops->fill(0, pull_);
  setup_.ops->fill(0, error_);
}

LastParcel PushSumMixing::hand_over() {
  const Ops& ops = *setup_.ops;
  // More than a parcel may hold is taken away, which leaves the model as it is.
  const double mass = std::min(mass_, setup_.mass.parcel);
  ops.copy(x_, v_);
  ops.axpy(1, pull_, v_);
  if (mass < mass_) {
    ops.scale(static_cast<float>(mass / mass_), v_);
    balance_.lowered += mass_ - mass;
  }
  ByteBuffer payload;
  payload.write(kShareOfLast);
  payload.write(mass);
  payload.write_span(std::span<const float>(v_));
  give_up();
  return {.payload = std::make_shared<const std::vector<std::byte>>(std::move(payload).take()),
          .mass = mass};
}

Status PushSumMixing::take_back(std::span<const std::byte> payload) {
  ByteReader in(payload);
  (void)in.read<double>();
  const auto mass = in.read<double>();
  in.read_into(std::span(x_));
  check(in.finished() && mass > 0, "what was handed over can be taken back");
  mass_ = mass;
  return ratio(x_, pull_, mass_, setup_.parameters);
}

Status PushSumMixing::ratio(std::span<const float> x, std::span<const float> pull, double mass,
                            std::span<float> z) const {
  setup_.ops->copy(pull, z);
  setup_.ops->axpy(1, x, z);
  setup_.ops->scale(static_cast<float>(1 / mass), z);
  return require_finite(*setup_.ops, z, "model x / ω");
}

Status PushSumMixing::step(Round step, std::span<const float> gradient) {
  if (Status status = require_finite(*setup_.ops, gradient, "gradient"); !status.ok()) {
    return status;
  }
  if (Status status = setup_.step_rule->direction(step, setup_.parameters, gradient, next_);
      !status.ok()) {
    return status;
  }
  if (const double scale = step_scale(mass_); scale != 1) {
    setup_.ops->scale(static_cast<float>(scale), next_);
  }
  setup_.ops->subtract(x_, next_, next_);
  if (Status status = ratio(next_, pull_, mass_, v_); !status.ok()) {
    return status;
  }
  bound_.stepping(setup_.parameters);
  std::swap(x_, next_);
  setup_.ops->copy(v_, setup_.parameters);
  return {};
}

Status PushSumMixing::stretch(float factor) {
  // x = ω z − pull: what z moves by, ω times.
  const Ops& ops = *setup_.ops;
  ops.subtract(setup_.parameters, bound_.from(), next_);
  ops.scale((factor - 1) * static_cast<float>(mass_), next_);
  ops.axpy(1, x_, next_);
  if (Status status = ratio(next_, pull_, mass_, v_); !status.ok()) {
    return status;
  }
  std::swap(x_, next_);
  ops.copy(v_, setup_.parameters);
  return {};
}

double PushSumMixing::share_of(double fair) const {
  if (fair * mass_ <= setup_.mass.parcel) {
    return fair;
  }
  // A float32, as receivers use it, and rounded down: no parcel is beyond what one may hold.
  const double most = setup_.mass.parcel / mass_;
  const auto share = static_cast<float>(most);
  return static_cast<double>(share <= most ? share : std::nextafter(share, 0.0F));
}

Status PushSumMixing::offer(const RandomKey& key, std::size_t degree, std::span<Addressee> to) {
  bound_.arrived(setup_.parameters);
  gave_ = 0;
  if (to.empty()) {
    return {};
  }
  const auto fair = static_cast<float>(1.0 / static_cast<double>(1 + degree));
  const double share = share_of(static_cast<double>(setup_.consensus_stepsize * fair));
  const auto receivers = static_cast<double>(
      std::ranges::count_if(to, [](const Addressee& one) { return !one.observer; }));
  const double gives = share * receivers;
  const Ops& ops = *setup_.ops;
  ops.copy(x_, v_);
  ops.axpy(1, error_, v_);
  if (Status status = require_finite(ops, v_, "compensated model x + δ"); !status.ok()) {
    return status;
  }
  const double mass = share * mass_;
  gave_ = mass;
  std::vector<std::byte> payload(max_payload());
  ByteWriter header(payload);
  header.write(share);
  header.write(mass);
  payload.resize(
      kPushSumHeaderBytes +
      setup_.compressor->encode_residual(v_, key, std::span(payload).subspan(kPushSumHeaderBytes)));

  // What is given away need not be a float32 value: its two halves make the own loss what the
  // others gain.
  const auto high = static_cast<float>(gives);
  const auto low = static_cast<float>(gives - static_cast<double>(high));
  ops.fill(0, next_);
  for (const float part : {high, low}) {
    const auto encoding = std::span<const std::byte>(payload).subspan(kPushSumHeaderBytes);
    if (Status status = setup_.compressor->decode_add(encoding, -part, next_); !status.ok()) {
      return status.with_context("own encoding");
    }
  }
  if (Status status = require_finite(ops, next_, "share given away"); !status.ok()) {
    return status;
  }
  std::swap(pull_, next_);
  std::swap(error_, v_);
  mass_ -= mass * receivers;
  const auto shared = std::make_shared<const std::vector<std::byte>>(std::move(payload));
  for (Addressee& addressee : to) {
    addressee.payload = shared;
    addressee.mass = addressee.observer ? 0 : mass;
  }
  return {};
}

Status PushSumMixing::check_payload(std::span<const std::byte> payload) const {
  if (payload.size() < kPushSumHeaderBytes || payload.size() > max_payload()) {
    return {Fault::malformed, fmt::format("a share of {} bytes", payload.size())};
  }
  const Header header = read_header(payload);
  if (!std::isfinite(header.share) || !std::isfinite(header.mass)) {
    return {Fault::non_finite, fmt::format("a share {} of mass {}", header.share, header.mass)};
  }
  if (is_last(header) && payload.size() != kPushSumHeaderBytes + x_.size() * sizeof(float)) {
    return {Fault::malformed, fmt::format("a last parcel of {} bytes", payload.size())};
  }
  if (!is_last(header) && !(header.share >= kLeast && header.share <= 1)) {
    return {Fault::malformed, fmt::format("a share {}, outside {} … 1", header.share, kLeast)};
  }
  if (!(header.mass >= kLeast && header.mass <= setup_.mass_cap)) {
    return {Fault::malformed,
            fmt::format("a mass {}, outside {} … {}", header.mass, kLeast, setup_.mass_cap)};
  }
  return {};
}

Status PushSumMixing::add_values(std::span<const std::byte> payload, float factor,
                                 std::span<float> into) const {
  const auto encoding = payload.subspan(kPushSumHeaderBytes);
  if (!is_last(read_header(payload))) {
    return setup_.compressor->decode_add(encoding, factor, into);
  }
  std::vector<float> values(into.size());
  ByteReader(encoding).read_into(std::span<float>(values));
  setup_.ops->axpy(factor, values, into);
  return {};
}

/// A parcel with more than one may hold is that of no honest site (share_of). It counts as if its
/// sender had given back what this site gave it, with this site's model: nothing is won by minting.
double PushSumMixing::counts_of(double mass) const {
  return mints(mass) ? std::min(gave_, setup_.mass.parcel) : std::min(mass, setup_.mass.parcel);
}

Result<Influence> PushSumMixing::add_share(std::span<const std::byte> payload, bool barred) {
  const Header header = read_header(payload);
  const double whole = is_last(header) ? 1 : header.share;
  const double counts = counts_of(header.mass);
  setup_.ops->fill(0, v_);
  if (Status status = add_values(payload, static_cast<float>(whole), v_); !status.ok()) {
    return status;
  }
  if (Status status = require_finite(*setup_.ops, v_, "share"); !status.ok()) {
    return status;
  }
  const std::span<const float> z = setup_.parameters;
  double sum = 0;
  for (std::size_t k = 0; k < z.size(); ++k) {
    const double pull = static_cast<double>(v_[k]) / header.mass - static_cast<double>(z[k]);
    sum += pull * pull;
  }
  const double distance = std::sqrt(sum);
  const double length = length_of(z);
  const double bound = bound_.longest(length);
  const bool absurd = !barred && PullBound::absurd(distance, bound, length);
  const double longest = barred || absurd ? 0 : bound;
  const bool cut = distance > longest;
  if (!barred) {
    bound_.pulled(distance);
  }
  const double moved = std::min(distance, longest) * counts / (mass_ + counts);
  setup_.ops->copy(pull_, next_);
  if (cut) {
    const double part = longest / distance;
    for (std::size_t k = 0; k < z.size(); ++k) {
      const auto own = static_cast<double>(z[k]);
      const double pull = static_cast<double>(v_[k]) / header.mass - own;
      next_[k] += static_cast<float>(counts * (own + part * pull));
    }
    return Influence{.moved = moved, .cut = 1, .absurd = absurd};
  }
  const double share = whole * (counts / header.mass);
  if (Status status = add_values(payload, static_cast<float>(share), next_); !status.ok()) {
    return status;
  }
  return Influence{.moved = moved};
}

Result<TakenIn> PushSumMixing::take_in(std::size_t /*peer*/, std::span<const std::byte> payload,
                                       bool barred) {
  const double given = read_header(payload).mass;
  auto influence = add_share(payload, barred || mints(given));
  if (!influence) {
    return influence.status();
  }
  const double counts = counts_of(given);
  if (Status status = ratio(x_, next_, mass_ + counts, v_); !status.ok()) {
    return status;
  }
  std::swap(pull_, next_);
  mass_ += counts;
  balance_.lowered += given - counts;
  influence->excess = mints(given) ? given - counts : 0;
  influence->parcels = 1;
  return TakenIn{given, *influence};
}

Status PushSumMixing::mix(std::size_t /*degree*/, std::span<MixedPeer> /*peers*/) {
  Status status = fold();
  return status.ok() ? give_back() : status;
}

Status PushSumMixing::fold() {
  const Ops& ops = *setup_.ops;
  if (Status status = ratio(x_, pull_, mass_, next_); !status.ok()) {
    return status;
  }
  ops.axpy(1, x_, pull_);
  std::swap(x_, pull_);
  ops.fill(0, pull_);
  ops.copy(next_, setup_.parameters);
  return {};
}

/// The mass comes back towards 1; z stays, as x goes along. What was withheld from parcels stays as
/// it is: it is owed to others in their measure, and what grows in every round would not be repaid.
Status PushSumMixing::give_back() {
  const MassRule& rule = setup_.mass;
  const double next = std::clamp(mass_ + rule.back * (1 - mass_), rule.least, rule.most);
  const double factor = next / mass_;
  if (std::abs(factor - 1) < kNothing) {
    return {};
  }
  const double more = next - mass_;
  (more > 0 ? balance_.raised : balance_.lowered) += std::abs(more);
  mass_ = next;
  if (more > 0 && setup_.kept) {
    // What a compressor withheld from parcels is left here, and where little else is left it makes
    // most of x: new mass comes at the model of before, or that would grow without end.
    setup_.ops->axpy(static_cast<float>(more), snapshot_.model(), x_);
    return ratio(x_, pull_, mass_, setup_.parameters);
  }
  // A factor in float32 alone would move z by as much of itself in every round, always one way.
  const auto high = static_cast<float>(factor);
  const auto low = static_cast<float>(factor - static_cast<double>(high));
  setup_.ops->copy(x_, next_);
  setup_.ops->scale(high, x_);
  setup_.ops->axpy(low, next_, x_);
  return ratio(x_, pull_, mass_, setup_.parameters);  // to the bit what a state is read as
}

Status PushSumMixing::move_to(std::span<const float> model) {
  const Ops& ops = *setup_.ops;
  ops.subtract(model, setup_.parameters, next_);
  ops.scale(static_cast<float>(mass_), next_);
  ops.axpy(1, x_, next_);
  if (Status status = ratio(next_, pull_, mass_, v_); !status.ok()) {
    return status;
  }
  std::swap(x_, next_);
  ops.copy(v_, setup_.parameters);
  return {};
}

Status PushSumMixing::put_back() {
  if (Status status = snapshot_.restore(setup_.parameters, *setup_.step_rule); !status.ok()) {
    return status;
  }
  setup_.ops->copy(setup_.parameters, x_);
  setup_.ops->scale(static_cast<float>(mass_), x_);
  setup_.ops->fill(0, pull_);
  setup_.ops->fill(0, error_);
  bound_.start_over();
  return {};
}

void PushSumMixing::save(ByteBuffer& out) const {
  out.write(mass_);
  out.write(balance_.raised);
  out.write(balance_.lowered);
  bound_.save(out);
  if (mass_ > 0) {
    write_floats(x_, out);
    write_floats(pull_, out);
    write_floats(error_, out);
  } else {
    write_floats(setup_.parameters, out);  // with mass, z follows
  }
  setup_.step_rule->save(out);
  setup_.compressor->save(out);
}

Status PushSumMixing::load(ByteReader& in) {
  mass_ = in.read<double>();
  balance_.raised = in.read<double>();
  balance_.lowered = in.read<double>();
  const auto sound = [](double sum) { return std::isfinite(sum) && sum >= 0; };
  // A site that has not begun, or gave up, has no mass.
  if (in.failed() || !(mass_ == 0 || (mass_ >= kLeast && mass_ <= setup_.mass_cap)) ||
      !sound(balance_.raised) || !sound(balance_.lowered)) {
    return {Fault::malformed, "checkpoint has a mass that cannot be"};
  }
  Status status = bound_.load(in);
  if (!status.ok()) {
    return status;
  }
  if (mass_ > 0) {
    status = read_floats(in, "x", x_);
    status = status.ok() ? read_floats(in, "pull", pull_) : status;
    status = status.ok() ? read_floats(in, "error", error_) : status;
    status = status.ok() ? fold() : status;
  } else {
    status = read_floats(in, "model", setup_.parameters);
  }
  status = status.ok() ? setup_.step_rule->load(in) : status;
  return status.ok() ? setup_.compressor->load(in) : status;
}

}  // namespace sotto::sites
