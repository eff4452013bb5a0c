// How a site brings models together: what its parcels hold, and what taking one in does. The site
// sees to it that each parcel is applied once; what is in it is known here alone.
//
// A building block of Site, not for users. One thread at a time. Views the caller's parameters;
// owns all else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/core/mass_rule.h>
#include <sotto/sites/core/parcel_stream.h>
#include <sotto/sites/core/pull_bound.h>
#include <sotto/sites/core/secret_shares.h>
#include <sotto/sites/core/secure_sum_rule.h>
#include <sotto/sites/core/site_state.h>

namespace sotto::sites {

class SecureSum;

/// The setup that every mixing needs.
struct MixingSetup {
  std::span<float> parameters;  ///< z
  ParameterLayout layout = {};  ///< complete layout of z
  std::unique_ptr<StepRule> step_rule;
  std::unique_ptr<Compressor> compressor;
  float consensus_stepsize = 1;  ///< η
  double mass_cap = 1024;        ///< push-sum: most mass that a message or a state may hold
  MassRule mass = {};            ///< push-sum: how mass comes back to 1
  PullLimits pull = {};
  std::optional<double> kept = {};  ///< part of ‖x‖² that the compressor keeps (PullBound)
  std::string rule = {};            ///< gossip: make_aggregation's; empty: the average
  std::string name = {};            ///< secure_mean: the site's name
  SecureSumRule sum = {};           ///< secure_mean: parameters of the sums
  Secret32 secret = {};             ///< secure_mean: key from which the process draws its masks
  const Ops* ops = &host_ops();
};

/// A peer that gets a parcel in this round, and what offer made for it.
struct Addressee {
  std::size_t peer = 0;
  bool whole = false;     ///< the peer does not have all earlier changes
  bool observer = false;  ///< the peer gives nothing back, so no mass goes to it
  Payload payload = {};
  double mass = 0;
};

/// One neighbour's influence on the model when the round was collected.
struct Influence {
  double moved = 0;  ///< distance by which it moved the model
  /// Length of its longest pull before it was cut; none: there was none, or it is not known.
  std::optional<double> distance{};
  std::uint64_t cut = 0;      ///< pulls that were cut to the bound
  bool absurd = false;        ///< one pull was longer than any honest site's (PullBound::absurd)
  double excess = 0;          ///< mass of its parcels beyond what a parcel may hold
  std::uint64_t parcels = 0;  ///< push-sum: parcels taken in
  /// Push-sum: the mass of the lightest of them, as a part of the least mass that a site holds,
  /// less what η holds back; none: none was taken in.
  std::optional<double> lightest{};
  /// Adds what another parcel of the neighbour did.
  void add(const Influence& more) {
    moved += more.moved;
    distance = std::max(distance, more.distance);  // none is less than any
    excess += more.excess;
    parcels += more.parcels;
    if (more.lightest) {
      lightest = std::min(lightest.value_or(*more.lightest), *more.lightest);
    }
    cut += more.cut;
    absurd = absurd || more.absurd;
  }
};

/// How a neighbour's parcels count.
enum class Credit : std::uint8_t {
  whole,      ///< as they are, within their bounds
  own_model,  ///< as this site's own model: the neighbour is barred
  nothing,    ///< with no mass either: the neighbour takes nothing from this site
};

/// The result of taking in a parcel.
struct TakenIn {
  double mass = 0;     ///< mass in the parcel
  double counted = 0;  ///< mass with which it counts; the rest is lowered
  Influence influence = {};
};

/// A neighbour that takes part in the end of a round, and the sites that it lists.
struct MixedPeer {
  std::size_t peer = 0;
  std::size_t degree = 0;
  bool barred = false;  ///< the neighbour's messages do not count
  /// Gossip: the part of the pull to its public copy that counts (freshness.h); 0: nothing came.
  double part = 1;
  Influence influence = {};  ///< filled in by mix, if models are mixed there
};

/// Mass that a site made and took away, so that its own comes back to 1.
struct MassBalance {
  double raised = 0;
  double lowered = 0;
};

/// All that a site has to give away when it leaves.
struct LastParcel {
  Payload payload = {};  ///< null: nothing
  double mass = 0;
};

class Mixing {
 public:
  static constexpr std::size_t kNobody = ~std::size_t{0};

  virtual ~Mixing() = default;

  /// The longest payload of a parcel, in bytes.
  virtual std::size_t max_payload() const = 0;
  /// ω; gossip: 1.
  virtual double mass() const = 0;
  /// Mass made and taken away by the rule of push-sum, since the state began.
  virtual MassBalance balance() const { return {}; }
  /// The list of peers has from.size() entries from now on; the one at k was at from[k] before, or
  /// is new (kNobody).
  virtual void rearrange(std::span<const std::size_t> from) = 0;

  /// Starts from the model in the parameters, with mass 1.
  virtual void begin() = 0;
  /// Ends what begin or load began; the parameters stay.
  virtual void give_up() = 0;
  /// The site leaves: what it holds becomes a parcel, after which it holds nothing, as after
  /// give_up.
  virtual LastParcel hand_over() { return {}; }
  /// Takes back what hand_over gave away, in place of begin, where the receiver has begun anew: it
  /// may have passed some of it on before that. Requires the payload that hand_over made. A fault:
  /// its numbers are not finite, or give no model that is.
  virtual Status take_back(std::span<const std::byte> /*payload*/) { return {}; }
  /// A new stream to and from a peer begins, or none goes on.
  virtual void forget(std::size_t peer) = 0;
  /// Another process of a peer goes on with its streams.
  virtual void comes_back(std::size_t /*peer*/) {}

  /// A local step, number `step` from 0, at the parameters. On a fault nothing has changed, but the
  /// step rule may have taken the gradient in.
  virtual Status step(Round step, std::span<const float> gradient) = 0;
  /// Makes the round's steps count `factor` times: z ← z₀ + factor (z − z₀), where z₀ is where they
  /// began. Requires a step since the last offer. On a fault nothing has changed.
  virtual Status stretch(float factor) = 0;
  /// Fills in what each addressee gets, of a site that lists `degree` sites to send to, and takes
  /// it from the own state. Without addressees, or on a fault, nothing changes; addressees without
  /// a payload get none.
  virtual Status offer(const RandomKey& key, std::size_t degree, std::span<Addressee> to) = 0;

  /// Checks a payload as far as that goes without decoding it.
  virtual Status check_payload(std::span<const std::byte> payload) const = 0;
  /// Applies a payload that was checked, which counts as `credit` says. On a fault nothing has
  /// changed.
  virtual Result<TakenIn> take_in(std::size_t peer, std::span<const std::byte> payload,
                                  Credit credit) = 0;
  /// The whole copy is due from this peer.
  virtual bool wants_whole(std::size_t peer) const = 0;
  /// Ends a round in which all has been taken in: sets the parameters. A fault is final.
  virtual Status mix(std::size_t degree, std::span<MixedPeer> peers) = 0;

  /// After mix: the model becomes this one, rounding aside. That is no step of the site's own,
  /// which would bound pulls: it may repeat a neighbour's pull. On a fault nothing has changed.
  virtual Status move_to(std::span<const float> model) = 0;

  /// Keeps the model, and what the step rule knows, for put_back.
  virtual void keep() = 0;
  /// Restores the model of the last keep(); later parcels have no effect on it. Masses and public
  /// copies stay, so that each parcel stays applied once.
  virtual Status put_back() = 0;
  /// The longest step of the last rounds, S.
  virtual double longest_step() const = 0;

  /// Appends the state, the parameters included.
  virtual void save(ByteBuffer& out) const = 0;
  /// Sets the parameters, too. On a fault the object must be discarded.
  virtual Status load(ByteReader& in) = 0;
  /// Appends the state of one peer.
  virtual void save_peer(std::size_t peer, ByteBuffer& out) const = 0;
  /// Takes back what save_peer wrote.
  virtual Status load_peer(std::size_t peer, ByteReader& in) = 0;

  /// The sums by which parcels are taken in; null: none are made.
  virtual SecureSum* secure_sum() { return nullptr; }
  /// The outcomes of the secure sums.
  virtual SumCounts sums() const { return {}; }
  /// The model that a site without one is given; empty: that of this site.
  virtual std::span<const float> model_for_newcomers() const { return {}; }

  /// The public copy, as Site::public_copy gives it.
  virtual std::span<const float> public_copy(std::optional<std::size_t> peer) const = 0;
  /// The version of that copy; 0 where there is none.
  virtual std::uint64_t version(std::optional<std::size_t> peer) const = 0;
};

/// The step rule's direction at the parameters, which may lie in `room`, of their dimension.
/// Fault::non_finite where gradient or direction are not finite.
Result<Direction> direction_of(const MixingSetup& setup, Round step,
                               std::span<const float> gradient, std::span<float> room);

/// A local step, number `step`, of the parameters: x ← x − the step rule's direction, noted by the
/// bound. `room` has their dimension. Fault::non_finite where the gradient or the new x is not
/// finite; x has not changed then.
Status take_step(const MixingSetup& setup, PullBound& bound, Round step,
                 std::span<const float> gradient, std::vector<float>& room);

/// Mixing::stretch of the parameters; `room` has their dimension.
Status stretch_steps(const MixingSetup& setup, PullBound& bound, float factor,
                     std::span<float> room);

/// Fault::non_finite that names `what`, with count and first element, unless all are finite.
Status require_finite(const Ops& ops, std::span<const float> values, std::string_view what);

}  // namespace sotto::sites
