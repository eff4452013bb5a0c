// sotto_optimizer: one node, its steps and its end.
#include <string>
#include <string_view>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/trainers/optimizer.h>

#include "callers_rule.h"
#include "guard.h"
#include "handles.h"
#include "optimizer_handle.h"
#include "optimizer_setup.h"
#include "settings.h"

namespace sotto::c {
namespace {

/// Throws Error after the end: `what` comes before it.
void require_unfinished(const sotto_optimizer& held, std::string_view what) {
  if (held.finished) {
    throw Error(what, "the run is finished: it comes before sotto_optimizer_finish");
  }
}

sotto_optimizer* make_optimizer(const sotto_optimizer_setup& setup, const char* const* settings,
                                std::span<float> model) {
  NodeSettings read = read_settings(settings);
  if (setup.step_rule) {
    std::vector<std::string_view> kept = {"lr"};
    if (wants_privacy(read.shared)) {
      kept.emplace_back("clip-norm");  // the mechanism's, which comes before the step rule
    }
    require_no_step_settings(read.given, kept);
    if (setup.step_rule->tells_settings()) {
      throw Error("step_rule",
                  "its settings are told by sotto_optimizer_announce_settings: make it without "
                  "sotto_step_rule_set_settings (in Python: StepRule without settings=)");
    }
  }
  OptimizerOptions options = node_options(read, setup.store);
  if (setup.step_rule) {
    options.own_step_rule = make_callers_rules(setup.step_rule);
  }
  return new sotto_optimizer(read, std::move(options), model, setup.layout,
                             setup.interrupt ? setup.interrupt : sotto_interrupt().flag);
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

}  // namespace
}  // namespace sotto::c

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

sotto_status sotto_optimizer_create(const char* const* settings, float* parameters, size_t count,
                                    const sotto_layout* layout, const sotto_store* store,
                                    sotto_optimizer** out) {
  return guarded([&] {
    need(out, "out");
    const auto model = model_at(parameters, count);
    *out = make_optimizer({.layout = blocks_of(layout),
                           .store = store == nullptr ? nullptr : store->store,
                           .interrupt = nullptr,
                           .step_rule = nullptr},
                          settings, model);
    return SOTTO_OK;
  });
}

sotto_status sotto_optimizer_create_from(const sotto_optimizer_setup* setup,
                                         const char* const* settings, float* parameters,
                                         size_t count, sotto_optimizer** out) {
  return guarded([&] {
    need(setup, "setup");
    need(out, "out");
    *out = make_optimizer(*setup, settings, model_at(parameters, count));
    return SOTTO_OK;
  });
}

void sotto_optimizer_destroy(sotto_optimizer* optimizer) { delete optimizer; }

sotto_status sotto_optimizer_connect(sotto_optimizer* optimizer) {
  return in_turn(optimizer, [&] { return optimizer->optimizer.connect(); });
}

sotto_status sotto_optimizer_begin_step(sotto_optimizer* optimizer) {
  return in_turn(optimizer, [&] {
    require_unfinished(*optimizer, "begin_step");
    return optimizer->optimizer.begin_step();
  });
}

sotto_status sotto_optimizer_step(sotto_optimizer* optimizer, const float* gradient, size_t count) {
  return in_turn(optimizer, [&] {
    require_unfinished(*optimizer, "step");
    return optimizer->optimizer.step(span_at(gradient, count, "gradient"));
  });
}

sotto_status sotto_optimizer_takes_parts(sotto_optimizer* optimizer, int* takes) {
  return in_turn(optimizer, [&] {
    need(takes, "takes");
    *takes = optimizer->optimizer.takes_parts() ? 1 : 0;
    return SOTTO_OK;
  });
}

sotto_status sotto_optimizer_gradient_part(sotto_optimizer* optimizer, size_t first,
                                           const float* part, size_t count) {
  return in_turn(optimizer, [&] {
    require_unfinished(*optimizer, "gradient_part");
    return optimizer->optimizer.gradient_part(first, span_at(part, count, "part"));
  });
}

sotto_status sotto_optimizer_step_by_parts(sotto_optimizer* optimizer) {
  return in_turn(optimizer, [&] {
    require_unfinished(*optimizer, "step_by_parts");
    return optimizer->optimizer.step();
  });
}

sotto_status sotto_optimizer_set_learning_rate(sotto_optimizer* optimizer, double rate) {
  return in_turn(optimizer, [&] {
    optimizer->optimizer.set_learning_rate(rate);
    return Status();
  });
}

sotto_status sotto_optimizer_announce_settings(sotto_optimizer* optimizer, double rate,
                                               const char* others) {
  return in_turn(optimizer, [&] {
    need(others, "others");
    if (!optimizer->optimizer.options().own_step_rule) {
      throw Error("announce_settings",
                  "the step rule is sotto's own: sotto_optimizer_set_learning_rate "
                  "changes its rate");
    }
    optimizer->optimizer.announce_settings(rate, others);
    return Status();
  });
}

sotto_status sotto_optimizer_evaluated(sotto_optimizer* optimizer, double loss, double accuracy) {
  return in_turn(optimizer, [&] { return optimizer->optimizer.evaluated(loss, accuracy); });
}

sotto_status sotto_optimizer_mean(sotto_optimizer* optimizer, float* mean, size_t count,
                                  double* consensus_distance) {
  return in_turn(optimizer, [&] {
    require_unfinished(*optimizer, "mean");
    const auto distance = optimizer->optimizer.mean_model(span_at(mean, count, "mean"));
    if (distance.ok() && consensus_distance != nullptr) {
      *consensus_distance = *distance;
    }
    return distance.status();
  });
}

sotto_status sotto_optimizer_carry_along(sotto_optimizer* optimizer, const float* values,
                                         size_t count) {
  return in_turn(optimizer, [&] {
    optimizer->optimizer.carry_along(span_at(values, count, "values"));
    return Status();
  });
}

sotto_status sotto_optimizer_take_from_node_0(sotto_optimizer* optimizer, float* values,
                                              size_t count) {
  return in_turn(optimizer, [&] {
    require_unfinished(*optimizer, "take_from_node_0");
    return optimizer->optimizer.take_from_node_0(span_at(values, count, "values"));
  });
}

sotto_status sotto_optimizer_give_up(sotto_optimizer* optimizer, const char* reason) {
  return in_turn(optimizer, [&] {
    need(reason, "reason");
    (void)optimizer->optimizer.give_up({Fault::peer_lost, reason});
    return SOTTO_OK;
  });
}

sotto_status sotto_optimizer_ask_to_end(sotto_optimizer* optimizer) {
  return at_any_time(optimizer, [&] { optimizer->optimizer.ask_to_end(); });
}

sotto_status sotto_optimizer_interrupt(sotto_optimizer* optimizer) {
  return at_any_time(optimizer, [&] { *optimizer->interrupted = true; });
}

sotto_status sotto_optimizer_drain(sotto_optimizer* optimizer) {
  return in_turn(optimizer, [&] { return optimizer->optimizer.drain(); });
}

sotto_status sotto_optimizer_finish(sotto_optimizer* optimizer) {
  return in_turn(optimizer, [&] { return finish(*optimizer, {}, nullptr); });
}

sotto_status sotto_optimizer_finish_with_mean(sotto_optimizer* optimizer, float* mean, size_t count,
                                              double* consensus_distance) {
  return in_turn(optimizer, [&] {
    require_unfinished(*optimizer, "finish_with_mean");
    need(mean, "mean");
    return finish(*optimizer, span_at(mean, count, "mean"), consensus_distance);
  });
}

sotto_status sotto_optimizer_round(sotto_optimizer* optimizer, uint64_t* round) {
  return in_turn(optimizer, [&] {
    need(round, "round");
    *round = optimizer->optimizer.round();
    return SOTTO_OK;
  });
}

sotto_status sotto_optimizer_warning_count(sotto_optimizer* optimizer, size_t* count) {
  return in_turn(optimizer, [&] {
    need(count, "count");
    *count = optimizer->optimizer.warnings().size() + optimizer->notices.added();
    return SOTTO_OK;
  });
}
