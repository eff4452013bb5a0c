// Push-sum among sites: shares of x and of the mass ω travel in parcels, along one-sided trust too.
//
// Rule (optim/algorithms/push_sum.h has papers and symbols), at a site that lists k sites to send
// to, observers left out, of which m can be sent to in this round; z = x / ω:
//   step     x ← x − ω φ γ ∇f(z), φ = 1 / ω, but 1/8 ≤ φ ≤ 4: z steps by φ γ ∇f(z)
//   offer    v = x + δ; each of the m gets C(v) with the share s = η / (1 + k), and the mass s ω;
//            p ← − m s C(v), ω ← ω − m s ω, δ ← v − C(v)
//   take in  a parcel (s, C, n): more mass than a parcel may have is cut off, all parcels of a peer
//            in one round being one, and so is a pull d = s C / n − z beyond the bound
//            (pull_bound.h); that of a peer which falls behind is damped (freshness.h):
//            p ← p + s C, ω ← ω + n; or in place of s C comes n (z + d), d cut or damped
//   mix      x ← x + p, p ← 0
//   move to  x ← x + ω (z' − z)
//   return   ω ← ω + ε (1 − ω), within its bounds (mass_rule.h); x by the same factor,
//            or, where C loses something, what is added at the z of before
// So z changes by nothing but own steps and parcels, whatever becomes of mass; and of mass nothing
// is made or lost, whichever sites are there, but by the return and the cut, which are counted. A
// site whose mass is 1, as on regular graphs where nothing fails, returns nothing.
//
// The parts: z, x, p and ω (push_sum_model.h); the payload of a parcel (push_sum_share.h); parcels
// that are made (push_sum_giving.h), and those that are taken in (push_sum_taking.h). Observers get
// the same parcels, and nothing is subtracted for them. Memory: 8 floats a parameter.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/mass_rule.h>
#include <sotto/sites/core/mixing/local_steps.h>
#include <sotto/sites/core/mixing/mixing.h>
#include <sotto/sites/core/mixing/push_sum_giving.h>
#include <sotto/sites/core/mixing/push_sum_model.h>
#include <sotto/sites/core/mixing/push_sum_taking.h>
#include <sotto/sites/core/model_snapshot.h>
#include <sotto/sites/core/pull_bound.h>

namespace sotto::sites {

/// What push-sum does with mass.
struct MassSetup {
  MassRule rule = {};
  double cap = 1024;  ///< most mass that a message or a state may hold
};

class PushSumMixing final : public Mixing {
 public:
  /// Use make_mixing (make_mixing.h), of a setup that was validated.
  explicit PushSumMixing(MixingSetup setup, const MassSetup& mass = {});
  PushSumMixing(const PushSumMixing&) = delete;
  PushSumMixing& operator=(const PushSumMixing&) = delete;

  std::size_t max_payload() const override;
  double mass() const override { return model_.mass(); }
  void rearrange(std::span<const std::size_t> from) override;

  void begin() override;
  void give_up() override;
  void forget(std::size_t peer) override { taking_.forget(peer); }

  Status step(Round step, std::span<const float> gradient) override;
  Status stretch(float factor) override;
  Status offer(const RandomKey& key, std::size_t degree, std::span<Addressee> to) override;
  Status check_payload(std::span<const std::byte> payload) const override;
  Result<TakenIn> take_in(std::size_t peer, std::span<const std::byte> payload,
                          const ParcelWeight& weight) override;
  Status mix(std::size_t degree, std::span<MixedPeer> peers) override;
  Status move_to(std::span<const float> model) override;
  void keep() override { snapshot_.keep(setup_.parameters, *setup_.step_rule); }
  Status put_back() override;
  double longest_step() const override { return bound_.longest_step(); }
  std::span<const float> model_for_newcomers() const override { return setup_.parameters; }

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  double stepsize() const override { return static_cast<double>(setup_.consensus_stepsize); }
  MassBalance balance() const override { return balance_; }
  LastParcel hand_over() override;
  Status take_back(std::span<const std::byte> payload) override;
  void comes_back(std::size_t peer) override { taking_.comes_back(peer); }

 private:
  /// The share of x and ω that each neighbour gets: `fair`, or less where that would be more mass
  /// than a parcel may hold.
  double share_of(double fair) const;
  Status give_back();

  MixingSetup setup_;
  MassRule rule_;
  double cap_;  // most mass that a message or a state may hold
  PullBound bound_;
  PushSumModel model_;
  PushSumGiving giving_;
  PushSumTaking taking_;
  ModelSnapshot snapshot_;
  MassBalance balance_;
};

}  // namespace sotto::sites
