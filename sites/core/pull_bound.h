// How far one parcel may pull a site's model: a multiple of the site's own steps.
//
// An honest neighbour is as far away as a few steps lead, since all step alike; one value of 3e37
// is not. With S the longest step of the last rounds, a pull d is cut to K S in length. A pull may
// always be a few units in the last place of the model's values long, or a model that stands still
// would never move again. What a compressor makes of a model is no model: there a pull may also be
// as long as kUsual times the median of the neighbours' latest pulls, in which each neighbour has
// one vote and which a minority of liars cannot lift, however many parcels they send; until there
// are enough of them, a multiple of the model's own length.
//
// A site that never steps, as an observer, has that median alone. There a pull counts with the
// median's length at most: could a liar pull K times as far as others, it would move the model,
// their pulls and with them the median, without end, unless more than K honest ones pull back. A
// pull is called too long only beyond kUsual medians, as half of all honest ones are beyond one.
// Until there are enough pulls one counts with the model's own length, at most, and none is called
// too long.
//
// Plain state, without clocks or files. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/mixing_kind.h>
#include <sotto/sites/core/places.h>

namespace sotto::sites {

/// Each site's own choice (docs/sites.md).
struct PullLimits {
  double most = 32;      ///< K: own steps that one parcel may pull
  double memory = 1024;  ///< T: rounds after which a long step is forgotten
  /// F: rounds to each one of a peer up to which its parcels pull whole (freshness.h); none: as the
  /// exchange needs.
  std::optional<Round> fresh = {};

  /// F with this exchange.
  Round fresh_of(MixingKind exchange) const {
    return fresh.value_or(exchange == MixingKind::push_sum ? 2 : 4);
  }
};

/// ‖x‖ in double precision: the square of a value that a liar chose may overflow float32.
double length_of(std::span<const float> x);
/// ‖x − y‖ in double precision.
double distance_between(std::span<const float> x, std::span<const float> y);
/// ‖x − y‖² in double precision.
double squared_distance(std::span<const float> x, std::span<const float> y);

/// What the bound says of one pull.
struct PullVerdict {
  bool cut = false;  ///< it is called too long
  /// No honest neighbour makes such a pull: it counts for nothing.
  bool absurd = false;
  double part = 1;  ///< part to which it is cut
};

/// The bound on pulls at one model.
struct PullReach {
  double length = 0;   ///< length of the model
  double longest = 0;  ///< the longest pull that is not called too long; infinity: any
  /// The length to which a longer pull is cut. Less than `longest` where the site never stepped.
  double reach = 0;

  /// What holds for a pull of this length.
  PullVerdict judge(double distance) const;
};

class PullBound {
 public:
  /// A pull may be as long as this many median pulls, where a compressor loses something.
  static constexpr double kUsual = 8;
  /// No honest neighbour that took part is this many times farther away than the bound: it would
  /// have to step the other way for that number of rounds.
  static constexpr double kAbsurd = 1024;
  /// Sites that were apart until they hardly moved have bounds near 0, and are no more than this
  /// many lengths of the model from each other. Cut to the bound, a pull moves each a little from
  /// where it stood still; its steps get longer, and with them the bound, until the two are
  /// together again.
  static constexpr double kFar = 16;
  /// Part of the model's length that a pull may always have: eight units in the last place.
  static constexpr double kResolved = 0x1p-20;
  /// Medians with which a pull of a compressor's counts at a site that never stepped: those that
  /// bring what others withheld are longer than usual.
  static constexpr double kUneven = 2;
  /// Pulls of each neighbour that are remembered, of whose median the median is taken; and how many
  /// there must be of all.
  static constexpr std::size_t kRemembered = 16;
  /// A neighbour of which nothing has come for so many pulls a neighbour has no voice any more.
  static constexpr std::uint64_t kSilent = 256;
  static constexpr std::size_t kEnough = 8;

  /// `kept` is the part of ‖x‖² that the compressor keeps of a vector, typically; none: all of it.
  PullBound(PullLimits limits, std::optional<double> kept) : limits_(limits), kept_(kept) {}

  /// A step is about to be taken at z; the first one since arrived() begins a round's.
  void stepping(std::span<const float> z);
  /// As stepping, after the step, which was taken at z and moved by `distance`; what is in `z` then
  /// is not said.
  void stepped_from(std::vector<float>& z, double distance);
  /// The round's steps so far have been made to count more, or less.
  void stretched() { moved_.reset(); }
  /// The model before the round's first step; empty: there was no step yet.
  std::span<const float> from() const {
    return stepped_ ? std::span<const float>(from_) : std::span<const float>();
  }
  /// The steps of a round, if there were any, led to z.
  void arrived(std::span<const float> z);
  /// The round's steps so far do not count: they are taken again.
  void start_over() { stepped_ = false; }
  /// The bound at a model of this length, by the pulls that have been noted so far.
  PullReach at(double length) const { return {length, longest(length), reach(length)}; }
  /// Notes the length of a neighbour's pull, before it was cut: once a round for each.
  void pulled(std::size_t peer, double distance);
  /// As Mixing::rearrange.
  void rearrange(std::span<const std::size_t> from) { follow_list(pulls_, from); }
  /// S
  double longest_step() const { return step_; }

  /// Appends S; the latest pulls are of the process alone.
  void save(ByteBuffer& out) const { out.write(step_); }
  /// Takes back what save wrote; Fault::malformed for a length that is none.
  Status load(ByteReader& in);

 private:
  double longest(double length) const;
  double reach(double length) const;
  bool has_enough_pulls() const;
  /// The lower median of each neighbour's median pull: one neighbour has one vote, however often
  /// it sends.
  double usual() const;

  PullLimits limits_;
  std::optional<double> kept_;
  double step_ = 0;
  bool steps_ = false;           ///< a step was taken, ever
  bool stepped_ = false;         ///< there was a step in this round
  std::vector<float> from_;      ///< z before the round's first step
  std::optional<double> moved_;  ///< distance from there, where it is known already
  /// The latest pulls of a neighbour.
  struct Pulls {
    std::deque<double> lengths{};
    std::uint64_t latest = 0;  ///< number of the latest one among those of all neighbours
  };
  bool counts(const Pulls& pulls) const {
    return !pulls.lengths.empty() && all_pulls_ - pulls.latest <= kSilent * pulls_.size();
  }

  std::vector<Pulls> pulls_;     ///< by neighbour
  std::uint64_t all_pulls_ = 0;  ///< number of pulls so far
};

}  // namespace sotto::sites
