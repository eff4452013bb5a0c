// The outer step of a site: what a round made of its model, its own steps and what neighbours
// pulled, goes through a step rule of its own. With a momentum this is NoLoCo
// (optim/wrappers/outer_after_mixing.h has paper and symbols), with any exchange of sites.
//
// Rule, at the end of a round that led from φ to m, d the rule's direction:
//   φ ← φ − d(φ − m)
// A φ that is not finite counts for nothing, as neighbours must not end a site: φ is m, and the
// rule begins without a memory. What one parcel does stays bounded (pull_bound.h), but sgd of rate
// β and momentum α makes it β / (1 − α) times as much in the end.
//
// A building block of Site. One thread at a time. Memory: 3 floats a parameter, and twice the
// rule's.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/core/model_snapshot.h>

namespace sotto::sites {

class OuterStep {
 public:
  /// Throws Error for options that make_step_rule refuses.
  OuterStep(const StepRuleOptions& options, const ParameterLayout& layout, std::size_t dimension,
            const Ops& ops);

  /// Rounds begin at this model, with a rule that remembers nothing.
  void begin(std::span<const float> model);
  /// φ − d(φ − m) for round `round`, from 0, which led to `mixed`; empty: it is not finite. Once a
  /// round, before arrived() or begin().
  std::span<const float> step(Round round, std::span<const float> mixed);
  /// The next round begins at this model, which is what step() gave, rounding aside.
  void arrived(std::span<const float> model) { ops_.copy(model, model_); }

  /// Keeps φ and the rule's memory, for put_back.
  void keep() { kept_.keep(model_, *rule_); }
  /// Restores what keep() kept; requires keep().
  void put_back();

  /// Appends φ and the rule's memory.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote.
  Status load(ByteReader& in);

 private:
  void forget();

  StepRuleOptions options_;
  ParameterLayout layout_;
  const Ops& ops_;
  std::unique_ptr<StepRule> rule_;
  std::vector<float> model_;  // φ
  std::vector<float> room_;   // φ − m, then what step() gives
  ModelSnapshot kept_;
};

}  // namespace sotto::sites
