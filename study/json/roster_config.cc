#include <sotto/study/json/roster_config.h>

#include <string_view>

#include <sotto/sites/core/mixing_kind.h>
#include <sotto/study/json/config_parts.h>

namespace sotto::study {
namespace {

/// `run` is the plan's SiteOptions or ElasticOptions, `exchange` what the nodes do.
template <typename Options>
Json config_of(const RosterPlan& plan, std::string_view exchange, const Options& run) {
  Json config = {{"name", run.name}, {"nodes", plan.roster.nodes}, {"seeds", plan.roster.seeds}};
  config.update(task_config_json(plan.task_spec, plan.task_options));
  config.update({{"exchange", exchange}, {"compressor", run.compressor}});
  config.update(step_rule_config_json(run.step_rule, {"step_rule", "lr", "schedule"}));
  config.update({{"communication_interval", plan.options.communication_interval},
                 {"rounds", run.rounds},
                 {"eval_every", plan.eval_every},
                 {"gradient_time", plan.options.gradient_time},
                 {"seed", run.seed}});
  config.update(outer_rule_config_json(run.outer_step_rule));
  return config;
}

}  // namespace

Json roster_config_json(const RosterPlan& plan) {
  return plan.epochs ? config_of(plan, "epochs", *plan.epochs)
                     : config_of(plan, sites::name_of(plan.run.exchange), plan.run);
}

}  // namespace sotto::study
