// Elements that had no gradient before Adam's variance was frozen: rows of an embedding that had
// not been seen, layers that are unfrozen late. Once gradients come, they run an Adam of their own
// until they have a variance, and are then frozen like the others. The rule is sotto's own.
//
// Rule, for each element with v = 0 at the freeze, from the first round on in which the nodes' mean
// gradient ḡ, in full precision, is not 0; t counts its rounds:
//   t ≤ L:  m ← β₁ m + (1 − β₁) ḡ;  v ← β₂ v + (1 − β₂) ḡ²;  d = γ m̂ / (√v̂ + ε)   (adam.h)
//   after t = L: m and v become the frozen Adam's, scaled so that neither m̂ nor v̂ changes
// L is T_w, the rounds before the freeze, or 1/(1 − β₂) where that is less: how far v remembers.
// An element whose v is 0 even then, since squares underflow, starts anew.
//
// Where nodes step by themselves for ℓ rounds between exchanges (zero_one_adam.h), the elements
// take these rounds at the exchange, each with the mean of the ℓ gradients and of the ℓ rates.
// Where nodes must agree on v before an element joins (late_gossip.h), it runs D rounds more, with
// v as it stands, and L is D at least.
//
// Weight decay λ x is added to ḡ from the first gradient on, and wakes no element by itself. The
// caller keeps the frozen Adam's momentum at 0 (zero_where_zero.h) where its v is 0: that is, until
// an element has joined.
//
// A building block of the algorithms, not for users. One thread at a time; allocates when the first
// gradient is taken and in `load`. Memory: 9 floats an element with v = 0.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/optim/exchange/exact_part.h>
#include <sotto/optim/step_rules/adam.h>

namespace sotto {

class LateElements {
 public:
  /// D, the rounds in which nodes agree on an element's v.
  explicit LateElements(Round agreement = 0) : agreement_(agreement) {}

  /// This node's clipped gradient of a round, without weight decay, which wakes no element. The
  /// first one lists the elements in which `adam` has v = 0, `freeze_step` being the number of
  /// rounds before the freeze.
  void take_gradient(std::span<const float> gradient, const Adam& adam, Round round,
                     Round freeze_step);
  /// The mean of this node's gradients since the last step, in which the mean of all nodes' is to
  /// be written.
  ExactElements gradients();
  /// Steps along those, with the weight decay of x: adds directions to the elements of `d`, which
  /// are 0 there. Fault::non_finite where a variance overflows, which is final.
  Status step(const Adam& adam, std::span<const float> x, std::span<float> d);
  /// Hands due elements to the frozen Adam, and takes them off the list. Fault::non_finite where
  /// their moments overflow as they are scaled, which is final.
  Status join(Adam& adam);
  /// Does both, one after the other.
  Status step_and_join(Adam& adam, std::span<const float> x, std::span<float> d) {
    const Status status = step(adam, x, d);
    return status.ok() ? join(adam) : status;
  }
  /// The elements that joined in the last call.
  std::span<const std::size_t> joined() const { return joined_; }

  /// No element is listed.
  bool empty() const { return at_.empty(); }

  // What nodes agree on, by element of the list (late_gossip.h).

  /// L and D
  Round learning() const { return learning_; }
  Round agreement() const { return agreement_; }
  /// v and t, which may be replaced.
  std::span<float> variances() { return second_; }
  std::span<std::uint32_t> ages() { return ages_; }

  /// Appends the state of the elements.
  void save(ByteBuffer& out) const;
  /// Restores the state that save wrote beside `adam`.
  Status load(ByteReader& in, const Adam& adam, Round freeze_step);

 private:
  bool begun() const { return learning_ > 0; }
  void begin(const Adam& adam, Round freeze_step);
  void step_once(const Adam& adam, double gamma, std::span<const float> x, std::span<float> d);
  /// Moments of the elements [first, last), which have one t.
  Adam::Moments moments(std::size_t first, std::size_t last);
  void keep(std::size_t elements);

  Round agreement_;     // D
  Round learning_ = 0;  // L; 0 before the first gradient
  // By element, in ascending order.
  std::vector<std::size_t> at_;      // indices of the elements
  std::vector<std::uint32_t> ages_;  // t; 0 before its first gradient
  std::vector<float> first_;         // m
  std::vector<float> second_;        // v
  std::vector<float> gradient_;      // Σ of this node's since the last step, then ḡ
  std::vector<float> step_;          // ḡ, then d
  // β₁^t and β₂^t by t, as running products: the bits that Adam has.
  std::vector<double> beta1_powers_;
  std::vector<double> beta2_powers_;
  Round rounds_ = 0;  // rounds since the last step
  double rates_ = 0;  // sum of the rates γ in these rounds
  std::vector<std::size_t> joined_;
};

}  // namespace sotto
