// What a node steps with, where that changes in the middle of a run, and how its frames say so to
// the neighbours. One thread at a time; the step rule must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/optim/round_terms.h>
#include <sotto/optim/step_rule.h>

namespace sotto::internal {

class StepSettings {
 public:
  /// `agreed_rate`: the learning rate on which the nodes agree before the first round.
  StepSettings(StepRule& rule, double agreed_rate) : rule_(rule), agreed_rate_(agreed_rate) {
    terms_->agreed_rate = agreed_rate;
  }

  /// The rule steps with this rate from now on. Throws Error for one that is none.
  void set_rate(double rate);
  /// The caller's own rule steps with this rate, and with other settings as this text has them.
  void announce(double rate, std::string_view others);
  /// The learning rate of the next step.
  double rate() const { return announced_rate_.value_or(rate_.value_or(agreed_rate_)); }
  /// StepRule::takes_any_part of the rule.
  bool takes_any_part() const { return rule_.takes_any_part(); }
  /// The changing terms of the node's rounds, which its algorithm and its driver share.
  const std::shared_ptr<RoundTerms>& terms() const { return terms_; }
  /// The stamp of these settings for frames.
  SettingsStamp stamp() const;

  /// Saves a rate that set_rate has set. What was announced is the caller's to save.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote, the last of a saved state.
  Status load(ByteReader& in);

 private:
  StepRule& rule_;
  const double agreed_rate_;
  const std::shared_ptr<RoundTerms> terms_ = std::make_shared<RoundTerms>();
  std::optional<double> rate_;            ///< learning rate that a call has set
  std::optional<double> announced_rate_;  ///< learning rate of the caller's own rule
  std::string announced_;                 ///< the other settings that the caller has changed
};

}  // namespace sotto::internal
