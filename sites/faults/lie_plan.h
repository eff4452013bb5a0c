// What sites that lie do in a plan of faults: of which kind, how strongly, and from when to when.
//
// Plain values; pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>
#include <sotto/sites/core/mixing_kind.h>

namespace sotto {

/// What a site that lies does. It is listed by all its neighbours.
enum class LieKind : std::uint8_t {
  takes,     ///< gives receipts for what it gets, and sends nothing
  swallows,  ///< gives neither parcels nor receipts
  mints,     ///< its parcels say that they hold another mass
  kills,     ///< its parcels, and its model for a late site, hold an absurd value
  late,      ///< its rounds take much of the others' patience
  ahead,     ///< says that it has come to a later round
  stints,    ///< its parcels hold a small part of the mass that they should
  denies,    ///< gives no receipts
  garbles,   ///< sends random bytes
  floods,    ///< sends each receipt many times
};

/// A kind of lie: its name in plans, and what its strength is of.
struct LieKindInfo {
  LieKind kind;
  std::string_view name;
  std::string_view summary;
  double usual = 0;           ///< strength where a plan gives none; 0: it has none
  double least = 0;           ///< lower bound of the strength
  double most = 0;            ///< upper bound of the strength
  bool now_and_then = false;  ///< whether it may happen in some messages, or rounds, alone
  bool needs_mass = false;    ///< whether it lies about mass, which push-sum alone has
};

/// All kinds, in the order of the enumeration.
std::span<const LieKindInfo> lie_kinds();
/// The entry of a kind.
const LieKindInfo& lie_kind(LieKind kind);
/// The name in plans and reports: "takes".
std::string_view name_of(LieKind kind);
/// The kind of this name; throws Error listing the names if there is none.
LieKind parse_lie_kind(std::string_view name);

/// Sites that lie. A lie that ends does so with the site's process: another one, which is honest,
/// goes on from the state that is written.
struct PlannedLie {
  LieKind kind = LieKind::takes;
  std::vector<Rank> sites = {};
  std::optional<double> strength = {};  ///< unset: the kind's usual one
  double often = 1;                     ///< part of its messages, or rounds, in which it lies
  double part = 1;                      ///< kills: part of the model's elements that are absurd
  SimTime at = 0;                       ///< beginning of the lie
  SimTime lasting = kNever;             ///< time from its beginning to its end
  bool restarts = false;                ///< the lie begins with a new process of the site

  /// How strong it is.
  double strength_of() const { return strength.value_or(lie_kind(kind).usual); }
  /// When it ends.
  SimTime end() const { return plus(at, lasting); }
};

/// Lies to be drawn by kind, strength and time.
struct RandomLies {
  std::uint64_t liars = 0;          ///< sites that lie, each in one way
  std::vector<LieKind> kinds = {};  ///< empty: all that go with the exchange
};

/// The drawn lies of `sites` sites in a run of `duration`. A pure function of its arguments.
std::vector<PlannedLie> draw_lies(const RandomLies& random, int sites, sites::MixingKind exchange,
                                  SimTime duration, std::uint64_t seed);

/// Throws Error for lies that such sites cannot tell.
void check_lies(const std::vector<PlannedLie>& lies, int sites, sites::MixingKind exchange);

}  // namespace sotto
