// The model as it was before a round took parcels in, to be put back to, and the state of the step
// rule, since a gradient at an absurd model spoils its moments, too.
//
// Of the process alone: a site that is started again has not collected yet. One thread at a time.
// Memory: one float a parameter, and the state of the step rule.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/status.h>
#include <sotto/optim/step_rule.h>

namespace sotto::sites {

class ModelSnapshot {
 public:
  /// Keeps z and the state of the rule.
  void keep(std::span<const float> z, const StepRule& rule) {
    model_.assign(z.begin(), z.end());
    ByteBuffer out(std::move(rule_));
    rule.save(out);
    rule_ = std::move(out).take();
  }
  /// The kept model; empty if none was kept.
  std::span<const float> model() const { return model_; }
  /// Restores the kept model and step rule; requires keep().
  Status restore(std::span<float> z, StepRule& rule) const {
    check(model_.size() == z.size(), "a model was kept");
    std::copy(model_.begin(), model_.end(), z.begin());
    ByteReader in(rule_);
    return rule.load(in);
  }

 private:
  std::vector<float> model_;
  std::vector<std::byte> rule_;
};

}  // namespace sotto::sites
