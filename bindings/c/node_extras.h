// What nodes that come and go are given beside their own settings: entries of the job, and a step
// rule of the caller's. Plain values and templates over the options of both kinds of node;
// thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <sotto/base/error.h>
#include <sotto/trainers/settings/agreed_settings.h>

#include "callers_rule.h"
#include "optimizer_setup.h"
#include "setting_pairs.h"

namespace sotto::c {

struct NodeExtras {
  AgreedSettings job;              ///< what the program's nodes must agree on
  std::vector<std::string> given;  ///< names of the settings, with dashes
};

/// Throws Error for what nodes that come and go take no part of.
inline void require_for_nodes(const sotto_optimizer_setup& setup) {
  if (setup.store != nullptr) {
    throw Error("store", "nodes that come and go meet as their settings say: leave it out");
  }
  if (setup.interrupt != nullptr) {
    throw Error("interrupt", "a node that comes and goes is ended by its stop: leave it out");
  }
}

/// A newcomer takes no more over than 64 bytes a parameter, of which the model has 4, and some.
inline std::size_t most_taken_over(std::size_t parameters) {
  return 60 * parameters + (std::size_t{1} << 19U);
}

/// The options (SiteOptions, ElasticOptions) with these. Throws Error for a step rule that does not
/// say how it is saved, and for settings that would be without effect beside it.
template <typename Options>
Options with_extras(Options options, const NodeExtras& extras,
                    const std::shared_ptr<StepFunction>& rule) {
  options.further.insert(options.further.end(), extras.job.begin(), extras.job.end());
  if (rule == nullptr) {
    return options;
  }
  require_no_step_settings(extras.given, {});
  if (!rule->remembers()) {
    throw Error(
        "step_rule",
        "what it remembers goes into the node's state: say how it is saved and loaded, with "
        "sotto_step_rule_set_state (in Python: StepRule(..., save=, load=))");
  }
  options.further.emplace_back("own-step-rule", rule->name());
  if constexpr (requires { options.own_step_settings; }) {
    options.own_step_rule = make_callers_rules(rule, most_taken_over);
    if (rule->tells_settings()) {
      options.own_step_settings = [rule](Round step) { return rule->settings_of(step); };
    }
  } else {
    if (rule->tells_settings()) {
      throw Error("step_rule",
                  "sites step in their own time and compare no settings of steps: make the rule "
                  "without sotto_step_rule_set_settings (in Python: StepRule without settings=)");
    }
    options.own_step_rule = make_callers_rules(rule);
  }
  return options;
}

}  // namespace sotto::c
