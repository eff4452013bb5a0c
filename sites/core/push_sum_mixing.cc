#include <sotto/sites/core/push_sum_mixing.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/shared_flag.h>
#include <sotto/compress/none.h>
#include <sotto/optim/state_io.h>
#include <sotto/sites/core/pieces.h>

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

/// Sums of a few numbers that are smaller than this are finite in float32.
constexpr double kFarFromOverflow = 1e30;

constexpr std::string_view kModel = "model x / ω";

/// ω φ, what a step of x is multiplied by; exactly 1 where the bounds of φ are not reached.
double step_scale(double mass) {
  const double wanted = 1 / mass;
  const double phi = std::clamp(wanted, kShortest, kLongest);
  return phi == wanted ? 1 : mass * phi;
}

ShareHeader read_header(std::span<const std::byte> payload) {
  ByteReader in(payload);
  ShareHeader header;
  header.share = in.read<double>();
  header.mass = in.read<double>();
  return header;
}

/// Whether the parcel is all that its sender had, who leaves: x as it is, and no share of it.
bool is_last(const ShareHeader& header) { return header.share == kShareOfLast; }

}  // namespace

PushSumMixing::PushSumMixing(MixingSetup setup)
    : setup_(std::move(setup)),
      exact_(setup_.compressor->wire_id() == kNoneWireId),
      bound_(setup_.pull, setup_.kept),
      x_(setup_.parameters.size()),
      pull_(x_.size()),
      error_(x_.size()),
      v_(x_.size()),
      next_(x_.size()),
      zeros_(std::min(setup_.ops->piece(), x_.size())) {
  setup_.step_rule->resize(setup_.layout);
}

std::size_t PushSumMixing::max_payload() const {
  return kPushSumHeaderBytes +
         std::max(setup_.compressor->max_bytes(x_.size()), x_.size() * sizeof(float));
}

void PushSumMixing::rearrange(std::span<const std::size_t> from) {
  bound_.rearrange(from);
  std::vector<Taken> next(from.size());
  for (std::size_t k = 0; k < from.size(); ++k) {
    next[k] = from[k] < taken_.size() ? taken_[from[k]] : Taken();
  }
  taken_ = std::move(next);
}

void PushSumMixing::begin() {
  mass_ = 1;
  setup_.ops->copy(setup_.parameters, x_);
  pulled_ = false;
  setup_.ops->fill(0, error_);
}

void PushSumMixing::give_up() {
  mass_ = 0;
  setup_.ops->fill(0, x_);
  pulled_ = false;
  setup_.ops->fill(0, error_);
}

LastParcel PushSumMixing::hand_over() {
  const Ops& ops = *setup_.ops;
  // More than a parcel may hold is taken away, which leaves the model as it is.
  const double mass = std::min(mass_, setup_.mass.parcel);
  ops.copy(x_, v_);
  if (pulled_) {
    ops.axpy(1, pull_, v_);
  }
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
  pulled_ = false;
  return ratio(x_, setup_.parameters);
}

std::span<const float> PushSumMixing::pull_at(std::size_t first, std::size_t count) const {
  return pulled_ ? std::span(pull_).subspan(first, count) : std::span(zeros_).first(count);
}

bool PushSumMixing::divide(std::span<const float> x, std::span<const float> pull, double mass,
                           std::span<float> z) const {
  setup_.ops->combine({{1, pull}, {1, x}}, z);
  return setup_.ops->combine({{static_cast<float>(1 / mass), z}}, z);
}

Status PushSumMixing::ratio(std::span<const float> x, std::span<float> z) const {
  const bool finite = by_piece(*setup_.ops, z.size(), [&](std::size_t first, std::size_t count) {
    return divide(x.subspan(first, count), pull_at(first, count), mass_, z.subspan(first, count));
  });
  return finite ? Status() : require_finite(*setup_.ops, z, kModel);
}

Status PushSumMixing::step(Round step, std::span<const float> gradient) {
  const Ops& ops = *setup_.ops;
  const auto d = direction_of(setup_, step, gradient, next_);
  if (!d.ok()) {
    return d.status();
  }
  const auto scale = static_cast<float>(step_scale(mass_));
  const std::span<float> z = setup_.parameters;
  double moved = 0;
  const bool finite = by_piece(ops, z.size(), [&](std::size_t first, std::size_t count) {
    const auto next = std::span(next_).subspan(first, count);
    step_along({d->scale, d->values.subspan(first, count)}, scale,
               std::span(x_).subspan(first, count), next);
    const auto now = z.subspan(first, count);
    const auto before = std::span(v_).subspan(first, count);
    ops.copy(now, before);
    const bool good = divide(next, pull_at(first, count), mass_, now);
    moved += squared_distance(now, before);
    return good;
  });
  if (!finite) {
    const Status status = require_finite(ops, z, kModel);
    ops.copy(v_, z);
    return status;
  }
  bound_.stepped_from(v_, std::sqrt(moved));
  std::swap(x_, next_);
  return {};
}

/// next ← x − scale d
void PushSumMixing::step_along(const Direction& d, float scale, std::span<const float> x,
                               std::span<float> next) const {
  const Ops& ops = *setup_.ops;
  if (scale == 1) {
    ops.combine({{1, x}, {-d.scale, d.values}}, next);
    return;
  }
  ops.combine({{d.scale, d.values}}, next);
  ops.scale(scale, next);
  ops.subtract(x, next, next);
}

Status PushSumMixing::stretch(float factor) {
  bound_.stretched();
  setup_.ops->subtract(setup_.parameters, bound_.from(), next_);
  return move_by_next(factor - 1);
}

Status PushSumMixing::move_by_next(float factor) {
  // x = ω z − pull: what z moves by, ω times.
  const Ops& ops = *setup_.ops;
  ops.scale(factor * static_cast<float>(mass_), next_);
  ops.axpy(1, x_, next_);
  if (Status status = ratio(next_, v_); !status.ok()) {
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
  const double mass = share * mass_;
  gave_ = mass;
  auto payload =
      exact_ ? give_as_is({share, mass}, gives) : give_encoded(key, {share, mass}, gives);
  if (!payload.ok()) {
    return payload.status();
  }
  pulled_ = true;
  mass_ -= mass * receivers;
  const auto shared = pool_.share(*std::move(payload));
  for (Addressee& addressee : to) {
    addressee.payload = shared;
    addressee.mass = addressee.observer ? 0 : mass;
  }
  return {};
}

/// A payload of the floats of x, which leaves no error, and p ← − gives x.
Result<std::vector<std::byte>> PushSumMixing::give_as_is(const ShareHeader& header, double gives) {
  const Ops& ops = *setup_.ops;
  std::vector<std::byte> payload = pool_.take(max_payload());
  payload.resize(kPushSumHeaderBytes);
  ByteWriter out(payload);
  out.write(header.share);
  out.write(header.mass);
  const auto high = static_cast<float>(gives);
  const auto low = static_cast<float>(gives - static_cast<double>(high));
  const bool finite = by_piece(ops, x_.size(), [&](std::size_t first, std::size_t count) {
    const auto x = std::span<const float>(x_).subspan(first, count);
    const auto bytes = std::as_bytes(x);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
    return ops.combine({{-high, x}, {-low, x}}, std::span(pull_).subspan(first, count));
  });
  if (!finite) {
    return require_finite(ops, pull_, "share given away");
  }
  return payload;
}

/// A payload of C(v), v = x + δ; δ ← v − C(v), and p ← − gives C(v).
Result<std::vector<std::byte>> PushSumMixing::give_encoded(const RandomKey& key,
                                                           const ShareHeader& header,
                                                           double gives) {
  const std::size_t most = kPushSumHeaderBytes + setup_.compressor->max_bytes(x_.size());
  std::vector<std::byte> payload = pool_.take(most);
  payload.resize(most);
  ByteWriter out(payload);
  out.write(header.share);
  out.write(header.mass);
  const auto encoding = encode(key, std::span(payload).subspan(kPushSumHeaderBytes));
  if (!encoding.ok()) {
    return encoding.status();
  }
  if (Status status = give(*encoding, gives); !status.ok()) {
    return status;
  }
  payload.resize(kPushSumHeaderBytes + encoding->size());
  std::swap(error_, v_);
  return payload;
}

/// C(v) in `out`, v = x + δ, and v ← v − C(v).
Result<std::span<const std::byte>> PushSumMixing::encode(const RandomKey& key,
                                                         std::span<std::byte> out) {
  const Ops& ops = *setup_.ops;
  const auto make = [&](std::size_t first, std::span<float> piece) {
    return ops.combine({{1, std::span(x_).subspan(first, piece.size())},
                        {1, std::span(error_).subspan(first, piece.size())}},
                       piece);
  };
  const auto bytes = setup_.compressor->encode_prepared(
      {.make = std::cref(make), .reads = {x_, error_}}, v_, key, out);
  if (bytes) {
    return std::span<const std::byte>(out.first(*bytes));
  }
  make(0, v_);
  Status status = require_finite(ops, v_, "compensated model x + δ");
  return status.ok() ? Status(Fault::unexpected, "the compensated model x + δ was not encoded")
                     : status;
}

/// p ← − gives C. What is given away need not be a float32 value: its two halves make the own loss
/// what the others gain.
Status PushSumMixing::give(std::span<const std::byte> encoding, double gives) {
  const auto high = static_cast<float>(gives);
  const auto low = static_cast<float>(gives - static_cast<double>(high));
  const std::array<Compressor::Term, 2> terms = {
      {{.bytes = encoding, .scale = -high}, {.bytes = encoding, .scale = -low}}};
  SharedFlag overflows;
  const auto take = [&](std::size_t first, std::span<const float> sum) {
    if (!setup_.ops->combine({{1, sum}}, std::span(pull_).subspan(first, sum.size()))) {
      overflows.raise();
    }
  };
  std::size_t refused = 0;
  Status status = setup_.compressor->decode_sum(std::span(terms).first(low == 0 ? 1 : 2), next_,
                                                std::cref(take), refused);
  if (!status.ok()) {
    return status.with_context("own encoding");
  }
  if (overflows.raised()) {
    return require_finite(*setup_.ops, pull_, "share given away");
  }
  return {};
}

Status PushSumMixing::check_payload(std::span<const std::byte> payload) const {
  if (payload.size() < kPushSumHeaderBytes || payload.size() > max_payload()) {
    return {Fault::malformed, fmt::format("a share of {} bytes", payload.size())};
  }
  const ShareHeader header = read_header(payload);
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

/// v ← whole × what the parcel holds.
Status PushSumMixing::read_values(const Share& share) {
  SharedFlag overflows;
  if (is_last(share.header)) {
    std::span<float> values = v_;
    ByteReader(share.encoding).read_into(values);
  } else {
    const auto take = [&](std::size_t first, std::span<const float> sum) {
      if (!setup_.ops->combine({{1, sum}}, std::span(v_).subspan(first, sum.size()))) {
        overflows.raise();
      }
    };
    const std::array<Compressor::Term, 1> term = {
        {{.bytes = share.encoding, .scale = share.whole}}};
    std::size_t refused = 0;
    if (Status status = setup_.compressor->decode_sum(term, next_, std::cref(take), refused);
        !status.ok()) {
      return status;
    }
    if (!overflows.raised()) {
      return {};
    }
  }
  return require_finite(*setup_.ops, v_, "share");
}

/// How far the parcel's model v / mass is from z.
double PushSumMixing::distance_of(double mass) const {
  const std::span<const float> z = setup_.parameters;
  const double share = 1 / mass;
  return std::sqrt(wide_sum(z.size(), [&](std::size_t k) {
    const double pull = static_cast<double>(v_[k]) * share - static_cast<double>(z[k]);
    return pull * pull;
  }));
}

PushSumMixing::Share PushSumMixing::share_in(std::size_t peer, std::span<const std::byte> payload,
                                             bool own_model) const {
  Share share;
  share.header = read_header(payload);
  const bool last = is_last(share.header);
  share.whole = last ? 1.0F : static_cast<float>(share.header.share);
  share.encoding = payload.subspan(kPushSumHeaderBytes);
  share.floats = (exact_ || last) && share.encoding.size() == x_.size() * sizeof(float);
  share.counts = counts_of(taken_[peer], share.header, own_model);
  return share;
}

/// All parcels of a peer that one round takes in count as one: what it sends more often than it is
/// given would raise the mass of all others without end. A parcel with more than one may hold is
/// that of no honest site (share_of). It counts as if its sender had given back what this site gave
/// it, with this site's model, as those of a barred peer do: nothing is won by minting. A last
/// parcel counts besides, once for each process of its sender.
double PushSumMixing::counts_of(const Taken& taken, const ShareHeader& header,
                                bool own_model) const {
  const double most = own_model ? std::min(gave_, setup_.mass.parcel) : setup_.mass.parcel;
  const double left = is_last(header) ? (taken.left ? 0 : most) : std::max(0.0, most - taken.mass);
  return std::min(header.mass, left);
}

Result<PushSumMixing::Pull> PushSumMixing::judge(const Share& share, bool own_model) {
  const double mass = share.header.mass;
  HowFar far =
      share.floats ? how_far(share.encoding, static_cast<double>(share.whole) / mass) : HowFar();
  Pull pull;
  if (!share.floats || !std::isfinite(far.distance)) {
    if (Status status = read_values(share); !status.ok()) {
      return status;
    }
    pull.read = true;
    far = {distance_of(mass), length_of(setup_.parameters)};
  }
  pull.distance = far.distance;
  pull.length = far.length;
  const double bound = bound_.longest(pull.length);
  pull.absurd = !own_model && PullBound::absurd(pull.distance, bound, pull.length);
  const bool counts_not = own_model || pull.absurd;
  pull.longest = counts_not ? 0 : bound_.reach(pull.length);
  pull.cut = pull.distance > pull.longest;
  pull.influence = {
      .moved = std::min(pull.distance, pull.longest) * share.counts / (mass_ + share.counts),
      .distance = pull.distance,
      .cut = pull.distance > (counts_not ? 0 : bound) ? 1U : 0U,
      .absurd = pull.absurd};
  return pull;
}

Status PushSumMixing::apply(const Share& share, const Pull& pull) {
  if (share.counts == 0) {
    return {};
  }
  const double mass = share.header.mass;
  const double sum = mass_ + share.counts;
  if (share.floats && !pull.cut && share.counts == mass &&
      (pull.length + pull.distance) * sum < kFarFromOverflow) {
    pull_as_is(share.encoding, share.whole);
    return {};
  }
  if (Status status = pull.read ? Status() : read_values(share); !status.ok()) {
    return status;
  }
  const std::span<const float> z = setup_.parameters;
  if (pull.cut) {  // n (z + d), d cut
    const double part = pull.longest / pull.distance;
    for (std::size_t k = 0; k < z.size(); ++k) {
      const auto own = static_cast<double>(z[k]);
      const double far = static_cast<double>(v_[k]) / mass - own;
      v_[k] = static_cast<float>(share.counts * (own + part * far));
    }
  } else if (share.counts != mass) {
    setup_.ops->scale(static_cast<float>(share.counts / mass), v_);
  }
  return pull_by(sum);
}

/// How far a model of these floats, times `factor`, is from z, and how long z is. The first is not
/// finite where a float is not.
PushSumMixing::HowFar PushSumMixing::how_far(std::span<const std::byte> floats,
                                             double factor) const {
  const std::span<const float> z = setup_.parameters;
  std::vector<float> room(zeros_.size());
  double distance = 0;
  double length = 0;
  by_piece(*setup_.ops, z.size(), [&](std::size_t first, std::size_t count) {
    const auto c = std::span(room).first(count);
    setup_.ops->from_host(floats.subspan(first * sizeof(float), c.size_bytes()), c);
    const auto own = z.subspan(first, count);
    distance += wide_sum(count, [&](std::size_t k) {
      const double pull = static_cast<double>(c[k]) * factor - static_cast<double>(own[k]);
      return pull * pull;
    });
    length += wide_sum(count, [&](std::size_t k) {
      return static_cast<double>(own[k]) * static_cast<double>(own[k]);
    });
    return true;
  });
  return {std::sqrt(distance), std::sqrt(length)};
}

/// p ← p + whole × these floats
void PushSumMixing::pull_as_is(std::span<const std::byte> floats, float whole) {
  if (!pulled_) {
    setup_.ops->fill(0, pull_);
    pulled_ = true;
  }
  setup_.ops->fp32_axpy(whole, floats, pull_);
}

/// p ← p + v, unless the model with it is not finite: mass is that with the parcel's.
Status PushSumMixing::pull_by(double mass) {
  const Ops& ops = *setup_.ops;
  const bool finite = by_piece(ops, v_.size(), [&](std::size_t first, std::size_t count) {
    const auto v = std::span(v_).subspan(first, count);
    const auto next = std::span(next_).subspan(first, count);
    ops.combine({{1, pull_at(first, count)}, {1, v}}, next);
    return divide(std::span<const float>(x_).subspan(first, count), next, mass, v);
  });
  if (!finite) {
    return require_finite(ops, v_, kModel);
  }
  std::swap(pull_, next_);
  pulled_ = true;
  return {};
}

Result<TakenIn> PushSumMixing::take_in(std::size_t peer, std::span<const std::byte> payload,
                                       Credit credit) {
  const double given = read_header(payload).mass;
  const bool own_model = credit == Credit::own_model || mints(given);
  const Share share = share_in(peer, payload, own_model);
  if (credit == Credit::nothing) {
    if (Status status = read_values(share); !status.ok()) {
      return status;
    }
    balance_.lowered += given;
    return TakenIn{.mass = given, .influence = {.parcels = 1}};
  }
  const auto pull = judge(share, own_model);
  Status status = pull.ok() ? apply(share, *pull) : pull.status();
  if (!status.ok()) {
    return status;
  }
  if (!own_model && std::exchange(noted_, peer) != peer) {
    bound_.pulled(peer, pull->distance);
  }
  Taken& taken = taken_[peer];
  if (is_last(share.header)) {
    taken.left = true;
  } else {
    taken.mass += share.counts;
  }
  mass_ += share.counts;
  balance_.lowered += given - share.counts;
  TakenIn result = {.mass = given, .counted = share.counts, .influence = pull->influence};
  result.influence.excess = mints(given) ? given - share.counts : 0;
  result.influence.parcels = 1;
  result.influence.lightest =
      given / (setup_.mass.least * static_cast<double>(setup_.consensus_stepsize));
  return result;
}

Status PushSumMixing::mix(std::size_t /*degree*/, std::span<MixedPeer> /*peers*/) {
  noted_ = kNobody;
  for (Taken& taken : taken_) {
    taken.mass = 0;
  }
  Status status = fold();
  return status.ok() ? give_back() : status;
}

Status PushSumMixing::fold() {
  const Ops& ops = *setup_.ops;
  const std::span<float> z = setup_.parameters;
  const auto inverse = static_cast<float>(1 / mass_);
  const bool finite = by_piece(ops, z.size(), [&](std::size_t first, std::size_t count) {
    const auto x = std::span(x_).subspan(first, count);
    ops.combine({{1, pull_at(first, count)}, {1, x}}, x);
    return ops.combine({{inverse, x}}, z.subspan(first, count));
  });
  pulled_ = false;
  return finite ? Status() : require_finite(ops, z, kModel);
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
    return ratio(x_, setup_.parameters);
  }
  // A factor in float32 alone would move z by as much of itself in every round, always one way.
  const auto high = static_cast<float>(factor);
  const auto low = static_cast<float>(factor - static_cast<double>(high));
  setup_.ops->copy(x_, next_);
  setup_.ops->scale(high, x_);
  setup_.ops->axpy(low, next_, x_);
  return ratio(x_, setup_.parameters);  // to the bit what a state is read as
}

Status PushSumMixing::move_to(std::span<const float> model) {
  setup_.ops->subtract(model, setup_.parameters, next_);
  return move_by_next(1);
}

Status PushSumMixing::put_back() {
  if (Status status = snapshot_.restore(setup_.parameters, *setup_.step_rule); !status.ok()) {
    return status;
  }
  setup_.ops->copy(setup_.parameters, x_);
  setup_.ops->scale(static_cast<float>(mass_), x_);
  pulled_ = false;
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
    save_pull(out);
    write_floats(error_, out);
  } else {
    write_floats(setup_.parameters, out);  // with mass, z follows
  }
  setup_.step_rule->save(out);
  setup_.compressor->save(out);
}

/// As write_floats, without a whole vector of zeros where nothing has pulled.
void PushSumMixing::save_pull(ByteBuffer& out) const {
  out.write(std::uint64_t{pull_.size()});
  for (std::size_t first = 0; first < pull_.size(); first += zeros_.size()) {
    out.write_span(pull_at(first, std::min(zeros_.size(), pull_.size() - first)));
  }
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
    pulled_ = true;
    status = status.ok() ? fold() : status;
  } else {
    status = read_floats(in, "model", setup_.parameters);
  }
  status = status.ok() ? setup_.step_rule->load(in) : status;
  return status.ok() ? setup_.compressor->load(in) : status;
}

}  // namespace sotto::sites
