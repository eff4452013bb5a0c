// The mean of all sites' models by secure sums (secure_sum.h): what `dpsgd` computes on a complete
// graph, where no site sees another one's model.
//
// Rule, at site i:
//   step     x ← x − γ ∇f(x)
//   offer    x, masked, to each other site
//   mix      x ← x + η (x̄ − x), x̄ = (x + Σ_{j ∈ U} x_j) / (1 + |U|), cut to the pull bound
//            (pull_bound.h), where the sum was made; else x stays
// A sum does not show which site moved it far: each site in it is given an equal part of the
// influence. A late site gets the mean of the last round that had one, never a single site's model.
//
// Memory: 6 floats a parameter, and a masked parcel for each peer under way.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/mixing/local_steps.h>
#include <sotto/sites/core/mixing/mixing.h>
#include <sotto/sites/core/model_snapshot.h>
#include <sotto/sites/core/pull_bound.h>
#include <sotto/sites/core/sums/secret_shares.h>
#include <sotto/sites/core/sums/secure_sum.h>
#include <sotto/sites/core/sums/secure_sum_rule.h>

namespace sotto::sites {

/// What the sums of a site need.
struct SumSetup {
  std::string name;  ///< the site's
  SecureSumRule rule = {};
  Secret32 secret = {};  ///< key from which the process draws its masks
};

class SecureMixing final : public Mixing {
 public:
  /// Use make_mixing (make_mixing.h), of a setup that was validated.
  SecureMixing(MixingSetup setup, const SumSetup& sum);

  std::size_t max_payload() const override { return sum_.max_payload(); }
  double mass() const override { return begun_ ? 1 : 0; }
  void rearrange(std::span<const std::size_t> /*from*/) override {}

  void begin() override;
  void give_up() override {
    begun_ = false;
    sum_.begin_anew();
  }
  void forget(std::size_t /*peer*/) override {}

  Status step(Round step, std::span<const float> gradient) override;
  Status stretch(float factor) override;
  Status offer(const RandomKey& key, std::size_t degree, std::span<Addressee> to) override;
  Status check_payload(std::span<const std::byte> payload) const override {
    return sum_.check_payload(payload);
  }
  Result<TakenIn> take_in(std::size_t peer, std::span<const std::byte> payload,
                          const ParcelWeight& weight) override;
  Status mix(std::size_t degree, std::span<MixedPeer> peers) override;
  Status move_to(std::span<const float> model) override {
    setup_.ops->copy(model, setup_.parameters);
    return {};
  }
  void keep() override { snapshot_.keep(setup_.parameters, *setup_.step_rule); }
  Status put_back() override;
  double longest_step() const override { return bound_.longest_step(); }

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  SecureSum* sum() override { return &sum_; }
  SumCounts counts() const override { return counts_; }
  std::span<const float> model_for_newcomers() const override { return given_; }

 private:
  MixingSetup setup_;
  SecureSum sum_;
  PullBound bound_;
  ModelSnapshot snapshot_;
  SumCounts counts_;
  bool begun_ = false;
  std::vector<float> next_;
  std::vector<float> given_;     // the last mean; before there was one, the initial model
  std::vector<float> previous_;  // the mean before given_
};

}  // namespace sotto::sites
