#include <sotto/sites/core/mixing/push_sum_taking.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/compress/none.h>
#include <sotto/sites/core/mixing/local_steps.h>
#include <sotto/sites/core/pieces.h>

namespace sotto::sites {
namespace {

/// What rounding may add to a mass, as a part of it.
constexpr double kRounding = 1e-9;

/// Sums of a few numbers that are smaller than this are finite in float32.
constexpr double kFarFromOverflow = 1e30;

}  // namespace

double most_in_parcel(const MassRule& rule, float stepsize) {
  return rule.parcel * static_cast<double>(stepsize);
}

PushSumTaking::PushSumTaking(PushSumModel& model, PullBound& bound, const Compressor& compressor,
                             const MassRule& rule, float stepsize)
    : model_(model),
      bound_(bound),
      compressor_(compressor),
      exact_(compressor.wire_id() == kNoneWireId),
      most_(most_in_parcel(rule, stepsize)),
      most_last_(rule.parcel),
      least_(rule.least * static_cast<double>(stepsize)) {}

void PushSumTaking::note_given(Payload parcel, double mass, std::span<const Addressee> to) {
  for (Taken& taken : taken_) {
    taken.given = false;
  }
  for (const Addressee& one : to) {
    taken_[one.peer].given = !one.observer;
  }
  gave_ = std::move(parcel);
  gave_mass_ = mass;
}

Result<TakenIn> PushSumTaking::take_in(std::size_t peer, std::span<const std::byte> payload,
                                       const ParcelWeight& weight) {
  const ShareHeader header = read_header(payload);
  const double given = header.mass;
  const bool minted = mints(header);
  const bool own_model = weight.credit == Credit::own_model || minted;
  const Share share = share_in(peer, payload, own_model);
  if (weight.credit == Credit::nothing) {
    if (Status status = read_values(share); !status.ok()) {
      return status;
    }
    return TakenIn{.mass = given, .influence = {.parcels = 1}};
  }
  const auto pull = judge(share, {own_model ? Credit::own_model : weight.credit, weight.part});
  if (!pull.ok()) {
    return pull.status();
  }
  if (Status status = own_model ? put_back(share.counts) : apply(share, *pull); !status.ok()) {
    return status;
  }
  if (!own_model && std::exchange(noted_, peer) != peer) {
    bound_.pulled(peer, pull->distance);
  }
  const bool massless = weight.credit == Credit::pull && !own_model;
  massless_ += massless ? share.counts : 0;
  Taken& taken = taken_[peer];
  const bool last = share.header.is_last();
  taken.left = taken.left || last;
  taken.mass += last && !own_model ? 0 : share.counts;
  TakenIn result = {
      .mass = given, .counted = massless ? 0 : share.counts, .influence = pull->influence};
  result.influence.excess = minted ? given - share.counts : 0;
  result.influence.parcels = 1;
  result.influence.lightest = given / least_;
  return result;
}

double PushSumTaking::end_round() {
  noted_ = kNobody;
  for (Taken& taken : taken_) {
    taken.mass = 0;
  }
  return std::exchange(massless_, 0);
}

double PushSumTaking::most_of(const ShareHeader& header) const {
  return header.is_last() ? most_last_ : most_;
}

bool PushSumTaking::mints(const ShareHeader& header) const {
  return header.mass > most_of(header) * (1 + kRounding);
}

PushSumTaking::Share PushSumTaking::share_in(std::size_t peer, std::span<const std::byte> payload,
                                             bool own_model) const {
  Share share;
  share.header = read_header(payload);
  const bool last = share.header.is_last();
  share.whole = last ? 1.0F : static_cast<float>(share.header.share);
  share.encoding = payload.subspan(ShareHeader::kBytes);
  share.floats = (exact_ || last) && share.encoding.size() == model_.size() * sizeof(float);
  share.counts = counts_of(taken_[peer], share.header, own_model);
  return share;
}

double PushSumTaking::counts_of(const Taken& taken, const ShareHeader& header,
                                bool own_model) const {
  if (own_model) {
    const double gave = taken.given ? gave_mass_ : 0;
    return std::min(header.mass, std::max(0.0, gave - taken.mass));
  }
  const double most = most_of(header);
  const double left = header.is_last() ? (taken.left ? 0 : most) : std::max(0.0, most - taken.mass);
  return std::min(header.mass, left);
}

Result<PushSumTaking::Pull> PushSumTaking::judge(const Share& share, const ParcelWeight& weight) {
  const bool own_model = weight.credit == Credit::own_model;
  const double mass = share.header.mass;
  HowFar far =
      share.floats ? how_far(share.encoding, static_cast<double>(share.whole) / mass) : HowFar();
  Pull pull;
  if (!share.floats || !std::isfinite(far.distance)) {
    if (Status status = read_values(share); !status.ok()) {
      return status;
    }
    pull.read = true;
    far = {distance_of(mass), length_of(model_.z())};
  }
  pull.distance = far.distance;
  pull.length = far.length;
  // A barred neighbour's parcel counts as what the neighbour was given: it pulls nowhere.
  const bool away = pull.distance > 0;
  const PullVerdict verdict = own_model ? PullVerdict{.cut = away, .part = away ? 0.0 : 1.0}
                                        : bound_.at(pull.length).judge(pull.distance);
  pull.part = std::min(weight.part, verdict.absurd ? 0 : verdict.part);
  pull.influence = {
      .moved = pull.part * pull.distance * share.counts / (model_.mass() + share.counts),
      .distance = pull.distance,
      .cut = verdict.cut ? 1U : 0U,
      .absurd = verdict.absurd};
  return pull;
}

Status PushSumTaking::apply(const Share& share, const Pull& pull) {
  if (share.counts == 0) {
    return {};
  }
  const double mass = share.header.mass;
  const double sum = model_.mass() + share.counts;
  if (share.floats && pull.part >= 1 && share.counts == mass &&
      (pull.length + pull.distance) * sum < kFarFromOverflow) {
    model_.pull_as_is(share.encoding, share.whole, share.counts);
    return {};
  }
  if (Status status = pull.read ? Status() : read_values(share); !status.ok()) {
    return status;
  }
  const std::span<const float> z = model_.z();
  const std::span<float> v = model_.values();
  if (pull.part < 1) {  // n (z + d), d cut or damped
    for (std::size_t k = 0; k < z.size(); ++k) {
      const auto own = static_cast<double>(z[k]);
      const double far = static_cast<double>(v[k]) / mass - own;
      v[k] = static_cast<float>(share.counts * (own + pull.part * far));
    }
  } else if (share.counts != mass) {
    model_.ops().scale(static_cast<float>(share.counts / mass), v);
  }
  return model_.pull_values(share.counts);
}

Status PushSumTaking::put_back(double counts) {
  if (counts == 0) {
    return {};
  }
  Share own;
  own.header = read_header(*gave_);
  own.whole = static_cast<float>(own.header.share);
  own.encoding = std::span(*gave_).subspan(ShareHeader::kBytes);
  if (Status status = read_values(own); !status.ok()) {
    return status;
  }
  if (counts != own.header.mass) {
    model_.ops().scale(static_cast<float>(counts / own.header.mass), model_.values());
  }
  return model_.pull_values(counts);
}

Status PushSumTaking::read_values(const Share& share) {
  const Ops& ops = model_.ops();
  std::span<float> values = model_.values();
  if (share.header.is_last()) {
    ByteReader(share.encoding).read_into(values);
    return require_finite(ops, values, "share");
  }
  const std::array<Compressor::Term, 1> term = {{{.bytes = share.encoding, .scale = share.whole}}};
  const auto finite = decode_by_piece(
      compressor_, term, model_.room(), [&](std::size_t first, std::span<const float> sum) {
        return ops.combine({{1, sum}}, values.subspan(first, sum.size()));
      });
  return !finite.ok() ? finite.status() : *finite ? Status() : require_finite(ops, values, "share");
}

double PushSumTaking::distance_of(double mass) const {
  const std::span<const float> z = model_.z();
  const std::span<const float> v = model_.values();
  const double share = 1 / mass;
  return std::sqrt(wide_sum(z.size(), [&](std::size_t k) {
    const double pull = static_cast<double>(v[k]) * share - static_cast<double>(z[k]);
    return pull * pull;
  }));
}

PushSumTaking::HowFar PushSumTaking::how_far(std::span<const std::byte> floats,
                                             double factor) const {
  const Ops& ops = model_.ops();
  const std::span<const float> z = model_.z();
  std::vector<float> room(std::min(ops.piece(), z.size()));
  double distance = 0;
  double length = 0;
  by_piece(ops, z.size(), [&](std::size_t first, std::size_t count) {
    const auto c = std::span(room).first(count);
    ops.from_host(floats.subspan(first * sizeof(float), c.size_bytes()), c);
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

}  // namespace sotto::sites
