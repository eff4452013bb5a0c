// Push-sum among sites: shares of x and of the mass ω travel in parcels, along one-sided trust too.
//
// Rule (optim/algorithms/push_sum.h has papers and symbols), at a site that lists k sites to send
// to, observers left out, of which m can be sent to in this round; z = x / ω:
//   step     x ← x − ω φ γ ∇f(z), φ = 1 / ω, but 1/8 ≤ φ ≤ 4: z steps by φ γ ∇f(z)
//   offer    v = x + δ; each of the m gets C(v) with the share s = η / (1 + k), and the mass s ω;
//            p ← − m s C(v), ω ← ω − m s ω, δ ← v − C(v)
//   take in  a parcel (s, C, n): more mass than a parcel may have is cut off, all parcels of a peer
//            in one round being one, and so is a pull
//            d = s C / n − z beyond the bound (pull_bound.h): in place of s C comes n (z + d), d
//            cut p ← p + s C, ω ← ω + n
//   mix      x ← x + p, p ← 0
//   move to  x ← x + ω (z' − z)
//   return   ω ← ω + ε (1 − ω), within its bounds (mass_rule.h); x by the same factor,
//            or, where C loses something, what is added at the z of before
// So z changes by nothing but own steps and parcels, whatever becomes of mass; and of mass nothing
// is made or lost, whichever sites are there, but by the return and the cut, which are counted. A
// site whose mass is 1, as on regular graphs where nothing fails, returns nothing. The pull p is
// kept apart so that sums are rounded in the order of PushSum, and the same numbers come out where
// nothing fails.
//
// Payload: share and mass, two doubles, 2^-64 … 1 and 2^-64 … the cap of all mass; the encoding.
// A last parcel has the share 2, its mass, and x + p as floats. Observers get the same, and nothing
// is subtracted for them. Memory: 8 floats a parameter.
#pragma once

#include <span>
#include <vector>

#include <sotto/base/byte_pool.h>
#include <sotto/sites/core/mixing.h>
#include <sotto/sites/core/model_snapshot.h>

namespace sotto::sites {

/// What stands in front of a parcel's encoding.
struct ShareHeader {
  double share = 0;
  double mass = 0;
};

class PushSumMixing final : public Mixing {
 public:
  /// Use make_mixing (mixing.h), which validates `setup`.
  explicit PushSumMixing(MixingSetup setup);

  std::size_t max_payload() const override;
  double mass() const override { return mass_; }
  MassBalance balance() const override { return balance_; }
  void rearrange(std::span<const std::size_t> from) override;

  void begin() override;
  void give_up() override;
  LastParcel hand_over() override;
  Status take_back(std::span<const std::byte> payload) override;
  void forget(std::size_t peer) override { taken_[peer] = {}; }
  void comes_back(std::size_t peer) override { taken_[peer].left = false; }

  Status step(Round step, std::span<const float> gradient) override;
  Status stretch(float factor) override;
  Status offer(const RandomKey& key, std::size_t degree, std::span<Addressee> to) override;
  Status check_payload(std::span<const std::byte> payload) const override;
  Result<TakenIn> take_in(std::size_t peer, std::span<const std::byte> payload,
                          Credit credit) override;
  bool wants_whole(std::size_t /*peer*/) const override { return false; }
  Status mix(std::size_t degree, std::span<MixedPeer> peers) override;
  Status move_to(std::span<const float> model) override;
  void keep() override { snapshot_.keep(setup_.parameters, *setup_.step_rule); }
  Status put_back() override;
  double longest_step() const override { return bound_.longest_step(); }

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;
  void save_peer(std::size_t /*peer*/, ByteBuffer& /*out*/) const override {}
  Status load_peer(std::size_t /*peer*/, ByteReader& /*in*/) override { return {}; }
  std::span<const float> public_copy(std::optional<std::size_t> /*peer*/) const override {
    return {};
  }
  std::uint64_t version(std::optional<std::size_t> /*peer*/) const override { return 0; }

 private:
  static constexpr double kRounding = 1e-9;

  /// The share of x and ω that each neighbour gets: `fair`, or less where that would be more mass
  /// than a parcel may hold.
  double share_of(double fair) const;
  /// Whether a parcel says that it has more mass than one may hold, rounding aside.
  bool mints(double mass) const { return mass > setup_.mass.parcel * (1 + kRounding); }
  /// What was taken in of one peer.
  struct Taken {
    double mass = 0;    ///< mass with which its parcels counted since the last mix
    bool left = false;  ///< the last parcel of its process came
  };
  /// A parcel of a peer.
  struct Share {
    ShareHeader header;
    float whole = 1;  ///< factor of its values
    std::span<const std::byte> encoding;
    bool floats = false;  ///< the encoding is floats as they are
    double counts = 0;    ///< mass with which it counts
  };
  /// How far a parcel pulls.
  struct Pull {
    double distance = 0;
    double length = 0;   ///< length of z
    double longest = 0;  ///< what it is cut to
    bool cut = false;
    bool absurd = false;
    bool read = false;  ///< v has its values
    Influence influence = {};
  };
  Share share_in(std::size_t peer, std::span<const std::byte> payload, bool own_model) const;
  /// The mass with which a parcel counts.
  double counts_of(const Taken& taken, const ShareHeader& header, bool own_model) const;
  /// How far the parcel pulls; v ← its values, where Pull::read says so.
  Result<Pull> judge(const Share& share, bool own_model);
  /// p ← p + the parcel's share of values, its mass and its pull cut to what counts.
  Status apply(const Share& share, const Pull& pull);
  /// Piece of p, which is 0 where nothing has pulled.
  std::span<const float> pull_at(std::size_t first, std::size_t count) const;
  /// z ← (x + pull) / mass, of a piece. Says whether all of it is finite.
  bool divide(std::span<const float> x, std::span<const float> pull, double mass,
              std::span<float> z) const;
  /// z ← (x + p) / ω. Fault::non_finite when it overflows.
  Status ratio(std::span<const float> x, std::span<float> z) const;
  void step_along(const Direction& d, float scale, std::span<const float> x,
                  std::span<float> next) const;

  Result<std::vector<std::byte>> give_as_is(const ShareHeader& header, double gives);
  Result<std::vector<std::byte>> give_encoded(const RandomKey& key, const ShareHeader& header,
                                              double gives);
  Result<std::span<const std::byte>> encode(const RandomKey& key, std::span<std::byte> out);
  Status give(std::span<const std::byte> encoding, double gives);
  Status read_values(const Share& share);
  double distance_of(double mass) const;
  struct HowFar {
    double distance = 0;
    double length = 0;
  };
  HowFar how_far(std::span<const std::byte> floats, double factor) const;
  void pull_as_is(std::span<const std::byte> floats, float whole);
  Status pull_by(double mass);
  /// x ← x + p, p ← 0, and z with them.
  Status fold();
  /// z moves by `factor` times what is in next_. On a fault nothing has changed.
  Status move_by_next(float factor);
  Status give_back();
  void save_pull(ByteBuffer& out) const;

  MixingSetup setup_;
  bool exact_;  // parcels have the floats of x as they are, and δ is 0
  PullBound bound_;
  std::size_t noted_ = kNobody;  // whose pull of this round the bound has noted last
  ModelSnapshot snapshot_;
  MassBalance balance_;
  double mass_ = 0;           // ω; 0 before begin
  double gave_ = 0;           // mass of each parcel that was made last
  std::vector<Taken> taken_;  // by peer
  std::vector<float> x_;      // x
  std::vector<float> pull_;   // p, where pulled_
  bool pulled_ = false;       // p is not 0
  std::vector<float> error_;  // δ
  std::vector<float> v_;
  std::vector<float> next_;
  BytePool pool_;             // of payloads
  std::vector<float> zeros_;  // in place of a piece of p
};

}  // namespace sotto::sites
