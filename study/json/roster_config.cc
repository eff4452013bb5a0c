#include <sotto/study/json/roster_config.h>

#include <string_view>

#include <sotto/sites/core/mixing_kind.h>
#include <sotto/study/json/config_parts.h>

namespace sotto::study {
namespace {

/// `run` is SiteOptions or EpochOptions, `exchange` what the nodes do.
template <typename Options>
Json config_of(const TrainOptions& o, const RosterSettings& roster, const TaskFactory& tasks,
               std::string_view exchange, const Options& run, Round eval_every) {
  Json config = {{"name", run.name}, {"nodes", roster.nodes}, {"seeds", roster.seeds}};
  config.update(task_config_json(tasks.data().spec, tasks.options()));
  config.update({{"exchange", exchange}, {"compressor", run.compressor}});
  config.update(step_rule_config_json(run.step_rule, {"step_rule", "lr", "schedule"}));
  config.update({{"communication_interval", o.communication_interval},
                 {"rounds", run.rounds},
                 {"eval_every", eval_every},
                 {"gradient_time", o.gradient_time},
                 {"seed", run.seed}});
  return config;
}

}  // namespace

Json roster_config_json(const TrainOptions& options, const RosterSettings& roster,
                        const TaskFactory& tasks, const RosterPlan& plan) {
  return plan.epochs ? config_of(options, roster, tasks, "epochs", *plan.epochs, plan.eval_every)
                     : config_of(options, roster, tasks, sites::name_of(plan.run.exchange),
                                 plan.run, plan.eval_every);
}

}  // namespace sotto::study
