#include <sotto/sites/faults/lie_plan.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/philox.h>

namespace sotto {
namespace {

/// The bounds of the mass that a parcel may name are those of the grammar.
constexpr double kLeastMass = 0x1p-64;
constexpr double kMostMass = 1024;
constexpr double kAbsurd = 3e37;
constexpr double kFarAhead = 0x1p47;

constexpr auto kLieKinds = std::to_array<LieKindInfo>({
    {.kind = LieKind::takes,
     .name = "takes",
     .summary = "gives receipts for what it gets, and sends nothing"},
    {.kind = LieKind::swallows,
     .name = "swallows",
     .summary = "gives neither parcels nor receipts"},
    {.kind = LieKind::mints,
     .name = "mints",
     .summary = "its parcels say that they hold such a mass",
     .usual = 1000,
     .least = kLeastMass,
     .most = kMostMass,
     .now_and_then = true,
     .needs_mass = true},
    {.kind = LieKind::kills,
     .name = "kills",
     .summary = "its parcels, and its model for a late site, hold such a value",
     .usual = kAbsurd,
     .least = 1,
     .most = kAbsurd,
     .now_and_then = true},
    {.kind = LieKind::late,
     .name = "late",
     .summary = "each round of it takes such a part of the patience longer",
     .usual = 0.9,
     .least = 0.01,
     .most = 100,
     .now_and_then = true},
    {.kind = LieKind::ahead,
     .name = "ahead",
     .summary = "says that it has come to a round that is so much later",
     .usual = kFarAhead,
     .least = 1,
     .most = kFarAhead},
    {.kind = LieKind::stints,
     .name = "stints",
     .summary = "its parcels hold such a part of the mass that they should",
     .usual = 1e-6,
     .least = 1e-12,
     .most = 1,
     .now_and_then = true,
     .needs_mass = true},
    {.kind = LieKind::denies, .name = "denies", .summary = "gives no receipts"},
    {.kind = LieKind::garbles,
     .name = "garbles",
     .summary = "sends random bytes",
     .now_and_then = true},
    {.kind = LieKind::floods,
     .name = "floods",
     .summary = "sends each receipt so many times",
     .usual = 32,
     .least = 2,
     .most = 4096},
});

/// Between the two, evenly by their logarithms.
double between(RandomStream& stream, double least, double most) {
  return least * std::pow(most / least, stream.uniform());
}

double draw_strength(LieKind kind, RandomStream& stream) {
  switch (kind) {
    case LieKind::mints:
      return stream.below(2) == 0 ? between(stream, 0.01, kMostMass)
                                  : between(stream, kLeastMass, kMostMass);
    case LieKind::kills:
      return stream.below(4) == 0 ? kAbsurd : between(stream, 10, kAbsurd);
    case LieKind::late:
      return 0.3 + stream.uniform();
    case LieKind::ahead:
      return std::floor(stream.below(2) == 0 ? kFarAhead : between(stream, 1, 1e9));
    case LieKind::stints:
      return between(stream, 1e-9, 0.1);
    case LieKind::floods:
      return std::floor(between(stream, 2, 64));
    default:
      return 0;
  }
}

void draw_times(PlannedLie& lie, SimTime duration, RandomStream& stream) {
  const double whole = static_cast<double>(duration);
  if (stream.below(2) == 0) {
    lie.at = from_nanoseconds(stream.uniform() * whole / 4);
    lie.restarts = stream.below(2) == 0;
  }
  if (stream.below(4) == 0) {
    lie.lasting = from_nanoseconds((0.1 + 0.4 * stream.uniform()) * whole);
  }
}

PlannedLie draw_lie(Rank site, const std::vector<LieKind>& kinds, SimTime duration,
                    RandomStream& stream) {
  PlannedLie lie;
  lie.kind = kinds[stream.below(kinds.size())];
  lie.sites = {site};
  const LieKindInfo& kind = lie_kind(lie.kind);
  if (kind.usual > 0) {
    lie.strength = draw_strength(lie.kind, stream);
  }
  constexpr std::array kOften = {0.5, 0.2, 0.05};
  if (kind.now_and_then && stream.below(3) == 0) {
    lie.often = kOften[stream.below(kOften.size())];
  }
  if (lie.kind == LieKind::kills && stream.below(2) == 0) {
    lie.part = stream.uniform();
  }
  draw_times(lie, duration, stream);
  return lie;
}

}  // namespace

std::span<const LieKindInfo> lie_kinds() { return kLieKinds; }

const LieKindInfo& lie_kind(LieKind kind) { return kLieKinds[static_cast<std::size_t>(kind)]; }

std::string_view name_of(LieKind kind) { return lie_kind(kind).name; }

LieKind parse_lie_kind(std::string_view name) {
  for (const LieKindInfo& info : kLieKinds) {
    if (info.name == name) {
      return info.kind;
    }
  }
  const auto names = names_of(kLieKinds);
  throw Error(fmt::format("'{}' is no kind of lie{} there are {}", name, did_you_mean(name, names),
                          fmt::join(names, ", ")));
}

std::vector<PlannedLie> draw_lies(const RandomLies& random, int sites, sites::MixingKind exchange,
                                  SimTime duration, std::uint64_t seed) {
  RandomStream stream({.seed = seed, .rank = 2, .purpose = Purpose::faults});
  std::vector<LieKind> kinds = random.kinds;
  for (const LieKindInfo& kind : kLieKinds) {
    if (random.kinds.empty() && (!kind.needs_mass || exchange == sites::MixingKind::push_sum)) {
      kinds.push_back(kind.kind);
    }
  }
  std::vector<Rank> honest;
  for (Rank site = 0; site < sites; ++site) {
    honest.push_back(site);
  }
  std::vector<PlannedLie> lies;
  for (std::uint64_t k = 0; k < random.liars && !honest.empty(); ++k) {
    const auto at = honest.begin() + static_cast<std::ptrdiff_t>(stream.below(honest.size()));
    lies.push_back(draw_lie(*at, kinds, duration, stream));
    honest.erase(at);
  }
  return lies;
}

void check_lies(const std::vector<PlannedLie>& lies, int sites, sites::MixingKind exchange) {
  std::vector<Rank> liars;
  for (const PlannedLie& lie : lies) {
    const LieKindInfo& kind = lie_kind(lie.kind);
    for (const Rank rank : lie.sites) {
      if (rank < 0 || rank >= sites) {
        refuse("sites", fmt::to_string(rank), fmt::format("there are {}", sites));
      }
      if (std::count(liars.begin(), liars.end(), rank) > 0) {
        refuse("sites", fmt::to_string(rank), "a site lies in one way; it is there twice");
      }
      liars.push_back(rank);
    }
    if (kind.needs_mass && exchange != sites::MixingKind::push_sum) {
      refuse("kind", kind.name, fmt::format("{} has no mass", sites::name_of(exchange)));
    }
    if (lie.strength && kind.usual == 0) {
      refuse("strength", fmt::to_string(*lie.strength),
             fmt::format("'{}' has none; leave it out", kind.name));
    }
    if (lie.strength && !(*lie.strength >= kind.least && *lie.strength <= kind.most)) {
      refuse("strength", fmt::to_string(*lie.strength),
             fmt::format("of '{}' it is {} … {}", kind.name, kind.least, kind.most));
    }
    if (!(lie.often > 0 && lie.often <= 1) || (lie.often < 1 && !kind.now_and_then)) {
      refuse("often", fmt::to_string(lie.often),
             fmt::format("more than 0 and at most 1; of '{}' {}", kind.name,
                         kind.now_and_then ? "any such part" : "1 alone"));
    }
    if (!(lie.part > 0 && lie.part <= 1)) {
      refuse("part", fmt::to_string(lie.part), "more than 0 and at most 1");
    }
    if (lie.part < 1 && lie.kind != LieKind::kills) {
      refuse("part", fmt::to_string(lie.part),
             fmt::format("'{}' changes no elements; leave it out", kind.name));
    }
  }
}

}  // namespace sotto
