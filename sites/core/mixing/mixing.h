// How a site brings models together: what its parcels hold, and what taking one in does. The site
// sees to it that each parcel is applied once; what is in it is known here alone.
//
// A building block of Site, not for users. One thread at a time. Views the caller's parameters;
// owns all else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/mixing/influence.h>
#include <sotto/sites/core/parcel_stream.h>
#include <sotto/sites/core/places.h>
#include <sotto/sites/core/site_state.h>

namespace sotto::sites {

/// A peer that gets a parcel in this round, and what offer made for it.
struct Addressee {
  std::size_t peer = 0;
  bool whole = false;     ///< the peer does not have all earlier changes
  bool observer = false;  ///< the peer gives nothing back, so no mass goes to it
  Payload payload = {};
  double mass = 0;
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
  Payload payload = {};
  double mass = 0;
};

class SecureSum;

class Mixing {
 public:
  virtual ~Mixing() = default;

  /// The longest payload of a parcel, in bytes.
  virtual std::size_t max_payload() const = 0;
  /// ω; gossip: 1.
  virtual double mass() const = 0;
  /// The list of peers is a new one: as follow_list (places.h).
  virtual void rearrange(std::span<const std::size_t> from) = 0;

  /// Starts from the model in the parameters, with mass 1.
  virtual void begin() = 0;
  /// Ends what begin or load began; the parameters stay.
  virtual void give_up() = 0;
  /// A new stream to and from a peer begins, or none goes on.
  virtual void forget(std::size_t peer) = 0;

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
  /// Applies a payload that was checked, which counts as `weight` says. On a fault nothing has
  /// changed.
  virtual Result<TakenIn> take_in(std::size_t peer, std::span<const std::byte> payload,
                                  const ParcelWeight& weight) = 0;
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

  /// The model that a site without one is given.
  virtual std::span<const float> model_for_newcomers() const = 0;

  // Push-sum: mass that moves among sites. With others none does.

  /// η: to each of k neighbours goes η / (1 + k) of the mass.
  virtual double stepsize() const { return 1; }
  /// Mass made and taken away by the rule of push-sum, since the state began.
  virtual MassBalance balance() const { return {}; }
  /// The site leaves: what it holds becomes a parcel, after which it holds nothing, as after
  /// give_up.
  virtual LastParcel hand_over() { return {}; }
  /// Takes back what hand_over gave away, in place of begin, where the receiver has begun anew: it
  /// may have passed some of it on before that. Requires the payload that hand_over made. A fault:
  /// its numbers are not finite, or give no model that is.
  virtual Status take_back(std::span<const std::byte> /*payload*/) { return {}; }
  /// Another process of a peer goes on with its streams.
  virtual void comes_back(std::size_t /*peer*/) {}

  // Gossip: copies of models that sites follow in public. With others there are none.

  /// The whole copy is due from this peer.
  virtual bool wants_whole(std::size_t /*peer*/) const { return false; }
  /// The public copy, as Site::public_copy gives it.
  virtual std::span<const float> public_copy(std::optional<std::size_t> /*peer*/) const {
    return {};
  }
  /// The version of that copy; 0 where there is none.
  virtual std::uint64_t version(std::optional<std::size_t> /*peer*/) const { return 0; }
  /// Appends the copy of one peer.
  virtual void save_peer(std::size_t /*peer*/, ByteBuffer& /*out*/) const {}
  /// Takes back what save_peer wrote.
  virtual Status load_peer(std::size_t /*peer*/, ByteReader& /*in*/) { return {}; }

  // Secure means: sums of models that stay hidden.

  /// The sums by which parcels are taken in; null: none are made.
  virtual SecureSum* sum() { return nullptr; }
  /// The outcomes of the sums.
  virtual SumCounts counts() const { return {}; }

  /// Appends the state, the parameters included.
  virtual void save(ByteBuffer& out) const = 0;
  /// Sets the parameters, too. On a fault the object must be discarded.
  virtual Status load(ByteReader& in) = 0;
};

}  // namespace sotto::sites
