// Push-sum among sites: shares of x and of the mass ω travel in parcels, along one-sided trust too.
//
// Rule (optim/algorithms/push_sum.h has papers and symbols), at a site that lists k sites to send
// to, of which m can be sent to in this round; z = x / ω:
//   step     x ← x − γ ∇f(z)
//   offer    v = x + δ; each of the m gets C(v) with the share s = η / (1 + k), and the mass s ω;
//            p ← − m s C(v), ω ← ω − m s ω, δ ← v − C(v)
//   take in  p ← p + s_j C(v_j), ω ← ω + what came
//   mix      x ← x + p, p ← 0
// So Σ (x + p) and Σ ω over sites and parcels under way stay, whatever C is and whoever is there.
// The pull p is kept apart so that sums are rounded in the order of PushSum, and the same numbers
// come out where nothing fails.
//
// A site that would keep less than kLeastKept of mass offers nothing: a step moves z by γ / ω, so
// that a site that hears nobody for long must not give all away.
//
// Payload: share and mass, two doubles, 2^-64 … 1 and 2^-64 … the cap of all mass; the encoding.
// Memory: 5 floats a parameter.
#pragma once

#include <vector>

#include <sotto/optim/federated/mixing.h>

namespace sotto::federated {

class PushSumMixing final : public Mixing {
 public:
  static constexpr double kLeastKept = 0.125;

  /// Use make_mixing (mixing.h), which validates `setup`.
  explicit PushSumMixing(MixingSetup setup);

  std::size_t max_payload() const override;
  double mass() const override { return mass_; }
  void rearrange(std::span<const std::size_t> /*from*/) override {}

  void begin() override;
  void give_up() override;
  void forget(std::size_t /*peer*/) override {}

  Status step(Round step, std::span<const float> gradient) override;
  Status offer(const RandomKey& key, std::size_t degree, std::span<Addressee> to) override;
  Status check_payload(std::span<const std::byte> payload) const override;
  Result<double> take_in(std::size_t peer, std::span<const std::byte> payload) override;
  bool wants_whole(std::size_t /*peer*/) const override { return false; }
  Status mix(std::size_t degree, std::span<const MixedPeer> peers) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;
  void save_peer(std::size_t /*peer*/, ByteBuffer& /*out*/) const override {}
  Status load_peer(std::size_t /*peer*/, ByteReader& /*in*/) override { return {}; }
  std::span<const float> public_copy(std::optional<std::size_t> /*peer*/) const override {
    return {};
  }
  std::uint64_t version(std::optional<std::size_t> /*peer*/) const override { return 0; }

  /// x and p
  std::span<const float> biased() const { return x_; }
  std::span<const float> pull() const { return pull_; }

 private:
  /// z ← (x + p) / mass. Fault::non_finite when it overflows.
  Status ratio(std::span<const float> x, std::span<const float> pull, double mass,
               std::span<float> z) const;

  MixingSetup setup_;
  double mass_ = 0;           // ω; 0 before begin
  std::vector<float> x_;      // x
  std::vector<float> pull_;   // p
  std::vector<float> error_;  // δ
  std::vector<float> v_;
  std::vector<float> next_;
};

}  // namespace sotto::federated
