#include <sotto/study/json/site_config.h>

#include <utility>

#include <sotto/base/names.h>
#include <sotto/study/json/config_parts.h>
#include <sotto/study/json/run_config.h>

namespace sotto::study {

Json site_config_json(const SiteOptions& run, const TaskFactory& tasks, std::string_view part,
                      std::string_view algorithm, Round eval_every) {
  Json config = {{"name", run.name}};
  config.update(task_config_json(tasks.data().spec, tasks.options()));
  config.update({{"scaling", run.scaling},
                 {"part", part},
                 {"partition", tasks.options().partition},
                 {"algorithm", algorithm},
                 {"compressor", run.compressor},
                 {"rule", run.rule}});
  config.update(step_rule_config_json(run.step_rule,
                                      {"step_rule", "lr", "momentum", "weight_decay", "schedule"}));
  config.update(
      {{"privacy", privacy_config_json(run.privacy)},
       {"communication_interval", run.communication_interval},
       {"own_steps",
        run.adapts_steps ? Json("auto") : Json(run.own_steps.value_or(run.communication_interval))},
       {"step_weighting", name_of(run.step_weighting)},
       {"rounds", run.rounds},
       {"eval_every", eval_every},
       {"seed", run.seed},
       {"window", run.window},
       {"slack", run.slack},
       {"save_every", run.save_every},
       {"observer", run.only_takes},
       {"mass_return", run.mass.back},
       {"parcel_mass", run.mass.parcel},
       {"exchange", sites::name_of(run.exchange)},
       {"secure_colluders", run.sum.colluders},
       {"secure_range", run.sum.range},
       {"pull_most", run.pull.most},
       {"pull_memory", run.pull.memory},
       {"pull_fresh", run.pull.fresh_of(run.exchange)}});
  config.update(outer_rule_config_json(run.outer_step_rule));
  for (const auto& [name, span] : {std::pair{"timeout", run.timeout},
                                   {"patience", run.patience},
                                   {"found_after", run.found_after}}) {
    config[name] = static_cast<double>(span.count()) / 1000;
  }
  return config;
}

}  // namespace sotto::study
