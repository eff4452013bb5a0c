// sotto_layout, sotto_store, sotto_interrupt and sotto_optimizer.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/base/nearest.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/step_rules/learning_rate.h>
#include <sotto/trainers/catalog.h>
#include <sotto/trainers/optimizer.h>

#include "guard.h"
#include "handles.h"
#include "settings.h"

namespace sotto::c {
namespace {

using Json = nlohmann::ordered_json;

/// Lines "name=value".
Json as_object(std::string_view text) {
  Json settings = Json::object();
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto equals = line.find('=');
    settings[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return settings;
}

/// What all nodes agree on, but for the job's entries, which may have names of settings.
Json settings_used(const Optimizer& optimizer) {
  std::string agreement = optimizer.agreement();
  const std::string job = settings_text(optimizer.options().job);
  check(agreement.ends_with(job), "the job's entries come last");
  agreement.resize(agreement.size() - job.size());
  Json settings = as_object(agreement);
  settings["lr"] = fmt::to_string(optimizer.learning_rate());  // as a call may have changed it
  return settings;
}

Json warnings_of(const sotto_optimizer& held) {
  Json warnings = Json::array();
  for (const std::string& warning : held.optimizer.warnings()) {
    warnings.push_back(warning);
  }
  for (const std::string& notice : held.notices.texts()) {
    warnings.push_back(notice);
  }
  return warnings;
}

Json privacy_json(const std::optional<PrivacySpent>& spent) {
  if (!spent) {
    return nullptr;
  }
  return {{"steps", spent->steps},
          {"steps_left", spent->left == kUnlimitedSteps ? Json() : Json(spent->left)},
          {"epsilon", spent->epsilon},
          {"delta", spent->delta}};
}

Json report_of(const sotto_optimizer& held) {
  const Optimizer& optimizer = held.optimizer;
  const OptimizerOptions& used = optimizer.options();
  Json traffic = Json::array();
  for (const LinkTraffic& edge : optimizer.traffic()) {
    traffic.push_back({{"to", edge.to}, {"bytes", edge.bytes}, {"frames", edge.frames}});
  }
  const DriverTimes times = optimizer.times();
  const AlgorithmCounters counters = optimizer.counters();
  return {{"sotto", SOTTO_VERSION},
          {"rank", used.rank},
          {"nodes", used.nodes},
          {"round", optimizer.round()},
          {"learning_rate", optimizer.learning_rate()},
          {"dimension", held.dimension},
          {"transport", used.transport},
          {"settings", settings_used(optimizer)},
          {"job", as_object(settings_text(used.job))},
          {"warnings", warnings_of(held)},
          {"traffic", traffic},
          {"times", {{"algorithm_s", times.algorithm_s}, {"wait_s", times.wait_s}}},
          {"counters",
           {{"saturated", counters.saturated},
            {"bad_frames", counters.bad_frames},
            {"drifted", counters.drifted},
            {"staleness", counters.staleness},
            {"most_stale", counters.most_stale},
            {"set_aside", counters.set_aside},
            {"other_settings", counters.other_settings}}},
          {"privacy", privacy_json(optimizer.privacy())}};
}

void check_unfinished(const sotto_optimizer& held) {
  if (held.finished) {
    throw Error("the run is finished; no step may follow");
  }
}

/// With the mean of all models where `mean` is not empty.
Status finish(sotto_optimizer& held, std::span<float> mean, double* consensus_distance) {
  if (held.finished) {
    return {};
  }
  // A node that made no step has yet to meet the others, which wait for it here.
  if (Status status = held.optimizer.connect(); !status.ok()) {
    return status;
  }
  const auto distance = held.optimizer.finish_with_mean(mean);
  held.finished = distance.ok();
  if (distance.ok() && consensus_distance != nullptr) {
    *consensus_distance = *distance;
  }
  return distance.status();
}

/// What may be called while another thread is inside a call, and by a signal's handler.
template <typename Action>
sotto_status at_any_time(const void* held, std::string_view what, const Action& action) {
  if (held == nullptr) {
    return guarded([&] {
      need(held, what);
      return SOTTO_OK;
    });
  }
  action();
  return SOTTO_OK;
}

}  // namespace
}  // namespace sotto::c

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

sotto_status sotto_list(const char* kind, char** json) {
  return guarded([&] {
    need(kind, "kind");
    need(json, "json");
    if (kind == std::string_view("settings")) {
      NodeSettings settings;
      return give(settings_json(groups_of(settings)), json);
    }
    const auto listed = catalog_kinds();
    std::vector<std::string> kinds(listed.begin(), listed.end());
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      kinds.emplace_back("settings");
      refuse_unknown("kind", excerpt(kind), kinds);
    }
    return give(catalog_json(kind), json);
  });
}

sotto_status sotto_layout_create(sotto_layout** out) {
  return guarded([&] {
    need(out, "out");
    *out = new sotto_layout();
    return SOTTO_OK;
  });
}

sotto_status sotto_layout_add(sotto_layout* layout, const char* name, size_t dimensions,
                              const size_t* shape) {
  return guarded([&] {
    need(layout, "layout");
    need(name, "name");
    const auto sizes = span_at(shape, dimensions, "shape");
    if (std::string_view(name).find('\n') != std::string_view::npos) {
      refuse("name", excerpt(name), "it holds a line break");
    }
    append_block(layout->blocks, name, {sizes.begin(), sizes.end()});
    return SOTTO_OK;
  });
}

void sotto_layout_destroy(sotto_layout* layout) { delete layout; }

sotto_status sotto_store_create(sotto_store** out) {
  return guarded([&] {
    need(out, "out");
    *out = new sotto_store{make_memory_store()};
    return SOTTO_OK;
  });
}

void sotto_store_destroy(sotto_store* store) { delete store; }

sotto_status sotto_interrupt_create(sotto_interrupt** out) {
  return guarded([&] {
    need(out, "out");
    *out = new sotto_interrupt();
    return SOTTO_OK;
  });
}

sotto_status sotto_interrupt_raise(sotto_interrupt* interrupt) {
  return at_any_time(interrupt, "interrupt", [&] { *interrupt->flag = true; });
}

void sotto_interrupt_destroy(sotto_interrupt* interrupt) { delete interrupt; }

sotto_status sotto_optimizer_create(const char* const* settings, float* parameters, size_t count,
                                    const sotto_layout* layout, sotto_store* store,
                                    sotto_optimizer** out) {
  return sotto_optimizer_create_interruptible(settings, parameters, count, layout, store, nullptr,
                                              out);
}

sotto_status sotto_optimizer_create_interruptible(const char* const* settings, float* parameters,
                                                  size_t count, const sotto_layout* layout,
                                                  sotto_store* store, sotto_interrupt* interrupt,
                                                  sotto_optimizer** out) {
  return sotto_optimizer_create_with_rule(settings, parameters, count, layout, store, interrupt,
                                          nullptr, out);
}

sotto_status sotto_optimizer_create_with_rule(const char* const* settings, float* parameters,
                                              size_t count, const sotto_layout* layout,
                                              sotto_store* store, sotto_interrupt* interrupt,
                                              sotto_step_rule* rule, sotto_optimizer** out) {
  return guarded([&] {
    need(out, "out");
    const auto model = span_at(parameters, count, "parameters");
    if (model.empty() || model.size() > kMaxDimension) {
      refuse("count", fmt::to_string(count), fmt::format("1 to {} would do", kMaxDimension));
    }
    NodeSettings read = read_settings(settings);
    if (rule != nullptr) {
      require_no_step_settings(read);
    }
    OptimizerOptions options = node_options(read, store == nullptr ? nullptr : store->store);
    if (rule != nullptr) {
      options.own_step_rule = [function = rule->function] { return make_callers_rule(function); };
    }
    *out = new sotto_optimizer(read, std::move(options), model,
                               layout == nullptr ? ParameterLayout() : layout->blocks,
                               interrupt == nullptr ? sotto_interrupt().flag : interrupt->flag);
    return SOTTO_OK;
  });
}

void sotto_optimizer_destroy(sotto_optimizer* optimizer) { delete optimizer; }

sotto_status sotto_optimizer_connect(sotto_optimizer* optimizer) {
  return with(optimizer, [&] { return optimizer->optimizer.connect(); });
}

sotto_status sotto_optimizer_begin_step(sotto_optimizer* optimizer) {
  return with(optimizer, [&] {
    check_unfinished(*optimizer);
    Status status = optimizer->optimizer.begin_step();
    optimizer->begun = status.ok();
    return status;
  });
}

sotto_status sotto_optimizer_step(sotto_optimizer* optimizer, const float* gradient, size_t count) {
  return with(optimizer, [&] {
    check_unfinished(*optimizer);
    const auto given = span_at(gradient, count, "gradient");
    Status status = optimizer->optimizer.step(given);
    // A gradient that is refused leaves the round open, and nothing to load may follow.
    optimizer->begun = !status.ok() && status.fault() != Fault::ended;
    if (status.fault() == Fault::non_finite && host_ops().count_non_finite(given).count == 0) {
      optimizer->broken = status;  // the step rule has taken in what it cannot give back
    }
    return status;
  });
}

sotto_status sotto_optimizer_set_learning_rate(sotto_optimizer* optimizer, double rate) {
  return with(optimizer, [&] {
    optimizer->optimizer.set_learning_rate(rate);
    return Status();
  });
}

sotto_status sotto_optimizer_announce_settings(sotto_optimizer* optimizer, double rate,
                                               const char* others) {
  return with(optimizer, [&] {
    need(others, "others");
    if (!optimizer->optimizer.options().own_step_rule) {
      throw Error(
          "announce_settings: the step rule is sotto's own: sotto_optimizer_set_learning_rate "
          "changes its rate");
    }
    if (!is_learning_rate(rate)) {
      refuse("rate", fmt::to_string(rate), fmt::format("it must {}", kLearningRates));
    }
    optimizer->optimizer.announce_settings(rate, others);
    return Status();
  });
}

sotto_status sotto_optimizer_evaluated(sotto_optimizer* optimizer, double loss, double accuracy) {
  return with(optimizer, [&] { return optimizer->optimizer.evaluated(loss, accuracy); });
}

sotto_status sotto_optimizer_mean(sotto_optimizer* optimizer, float* mean, size_t count,
                                  double* consensus_distance) {
  return with(optimizer, [&] {
    check_unfinished(*optimizer);
    const auto distance = optimizer->optimizer.mean_model(span_at(mean, count, "mean"));
    if (distance.ok() && consensus_distance != nullptr) {
      *consensus_distance = *distance;
    }
    return distance.status();
  });
}

sotto_status sotto_optimizer_carry_along(sotto_optimizer* optimizer, const float* values,
                                         size_t count) {
  return with(optimizer, [&] {
    optimizer->optimizer.carry_along(span_at(values, count, "values"));
    return Status();
  });
}

sotto_status sotto_optimizer_take_from_node_0(sotto_optimizer* optimizer, float* values,
                                              size_t count) {
  return with(optimizer, [&] {
    check_unfinished(*optimizer);
    return optimizer->optimizer.take_from_node_0(span_at(values, count, "values"));
  });
}

sotto_status sotto_optimizer_give_up(sotto_optimizer* optimizer, const char* reason) {
  return in_turn(optimizer, "optimizer", [&] {
    need(reason, "reason");
    (void)optimizer->optimizer.give_up({Fault::peer_lost, reason});
    return SOTTO_OK;
  });
}

sotto_status sotto_optimizer_ask_to_stop(sotto_optimizer* optimizer) {
  return at_any_time(optimizer, "optimizer", [&] { optimizer->optimizer.ask_to_stop(); });
}

sotto_status sotto_optimizer_interrupt(sotto_optimizer* optimizer) {
  return at_any_time(optimizer, "optimizer", [&] { *optimizer->interrupted = true; });
}

sotto_status sotto_optimizer_drain(sotto_optimizer* optimizer) {
  return with(optimizer, [&] { return optimizer->optimizer.drain(); });
}

sotto_status sotto_optimizer_finish(sotto_optimizer* optimizer) {
  return with(optimizer, [&] { return finish(*optimizer, {}, nullptr); });
}

sotto_status sotto_optimizer_finish_with_mean(sotto_optimizer* optimizer, float* mean, size_t count,
                                              double* consensus_distance) {
  return with(optimizer, [&] {
    check_unfinished(*optimizer);
    need(mean, "mean");
    return finish(*optimizer, span_at(mean, count, "mean"), consensus_distance);
  });
}

sotto_status sotto_optimizer_round(sotto_optimizer* optimizer, uint64_t* round) {
  return in_turn(optimizer, "optimizer", [&] {
    need(round, "round");
    *round = optimizer->optimizer.round();
    return SOTTO_OK;
  });
}

sotto_status sotto_optimizer_warning_count(sotto_optimizer* optimizer, size_t* count) {
  return in_turn(optimizer, "optimizer", [&] {
    need(count, "count");
    *count = optimizer->optimizer.warnings().size() + optimizer->notices.texts().size();
    return SOTTO_OK;
  });
}

sotto_status sotto_optimizer_report(sotto_optimizer* optimizer, char** json) {
  return in_turn(optimizer, "optimizer", [&] {
    need(json, "json");
    return give(json_text(report_of(*optimizer)), json);
  });
}
