// Gossip among sites that trust each other both ways: each follows the public copies x̂ of its
// neighbours.
//
// Rule (optim/algorithms/choco_sgd.h has paper and symbols), at site i:
//   step     x ← x − γ ∇f(x)
//   offer    q = C(x − x̂_i); x̂_i ← x̂_i + q; those who have followed get q, all others x̂_i
//   take in  x̂_j ← x̂_j + q, or x̂_j as it came
//   mix      x ← x + η Σ_j W_ij (x̂_j − x̂_i), over those who are there and followed, each pull cut
//            to the bound (pull_bound.h), and W_ij = 1 / (1 + max(deg i, deg j));
//            or x ← A(x; x̂_j), a robust rule (aggregation.h), which asks for an exact C, of
//            pulls x̂_j − x that are cut likewise
// x̂_i is the model that the site begins with. A copy that has drifted, told by its version
// (optim/exchange/replica.h), is not used until it came whole.
//
// The payload is that of a public copy (public_copy.h). Memory: 6 floats a parameter, and one for
// each neighbour; with a rule two for each, and one more (robust_average.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/byte_pool.h>
#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/mixing/local_steps.h>
#include <sotto/sites/core/mixing/mixing.h>
#include <sotto/sites/core/mixing/public_copy.h>
#include <sotto/sites/core/mixing/robust_average.h>
#include <sotto/sites/core/model_snapshot.h>
#include <sotto/sites/core/pull_bound.h>

namespace sotto::sites {

class GossipMixing final : public Mixing {
 public:
  /// Use make_mixing (make_mixing.h), of a setup that was validated. `rule` is make_aggregation's;
  /// empty: the average.
  explicit GossipMixing(MixingSetup setup, const std::string& rule = {});

  std::size_t max_payload() const override;
  double mass() const override { return begun_ ? 1 : 0; }
  void rearrange(std::span<const std::size_t> from) override;

  void begin() override;
  void give_up() override;
  void forget(std::size_t peer) override;

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

  bool wants_whole(std::size_t peer) const override { return !replicas_[peer].held(); }
  void save_peer(std::size_t peer, ByteBuffer& out) const override;
  Status load_peer(std::size_t peer, ByteReader& in) override;
  std::span<const float> public_copy(std::optional<std::size_t> peer) const override;
  std::uint64_t version(std::optional<std::size_t> peer) const override;

 private:
  Result<std::size_t> encode_change(const RandomKey& key, std::span<std::byte> out);
  /// What a neighbour's copy pulls.
  struct Pull {
    std::span<const float> to;
    float weight = 0;
  };
  std::vector<Pull> weigh(std::size_t degree, std::span<MixedPeer> peers);
  bool average(const std::vector<Pull>& pulls);
  void withstand(std::size_t degree, std::span<MixedPeer> peers);
  /// The steps of the next round begin at the parameters.
  void begin_round();

  MixingSetup setup_;
  PullBound bound_;
  ModelSnapshot snapshot_;
  bool begun_ = false;
  PublicCopy own_;  // x̂_i
  std::vector<PublicCopy> replicas_;
  std::optional<RobustAverage> robust_;  // none: the average
  std::vector<float> scratch_;
  std::vector<float> next_;
  BytePool pool_;              // of payloads
  std::vector<float> pieces_;  // room for two pieces
};

}  // namespace sotto::sites
