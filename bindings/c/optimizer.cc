// sotto_optimizer: one node, its steps and its end.
#include <string>
#include <string_view>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/kernels/ops.h>
#include <sotto/trainers/optimizer.h>

#include "guard.h"
#include "handles.h"
#include "settings.h"

namespace sotto::c {
namespace {

void check_unfinished(const sotto_optimizer& held) {
  if (held.finished) {
    throw Error("the run is finished; no step may follow");
  }
}

/// Where a finite gradient overflowed, the step rule has taken in what it cannot give back.
void note_overflow(sotto_optimizer& held, const Status& status, std::span<const float> gradient) {
  if (!status.ok() && status.fault() == Fault::non_finite &&
      host_ops().count_non_finite(gradient).count == 0) {
    held.broken = status;
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

}  // namespace
}  // namespace sotto::c

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

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
    const auto model = model_at(parameters, count);
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
    note_overflow(*optimizer, status, given);
    return status;
  });
}

sotto_status sotto_optimizer_takes_parts(sotto_optimizer* optimizer, int* takes) {
  return in_turn(optimizer, "optimizer", [&] {
    need(takes, "takes");
    *takes = optimizer->optimizer.takes_parts() ? 1 : 0;
    return SOTTO_OK;
  });
}

sotto_status sotto_optimizer_gradient_part(sotto_optimizer* optimizer, size_t first,
                                           const float* part, size_t count) {
  return with(optimizer, [&] {
    check_unfinished(*optimizer);
    const auto given = span_at(part, count, "part");
    Status status = optimizer->optimizer.gradient_part(first, given);
    optimizer->begun = status.fault() != Fault::ended;
    note_overflow(*optimizer, status, given);
    return status;
  });
}

sotto_status sotto_optimizer_step_by_parts(sotto_optimizer* optimizer) {
  return with(optimizer, [&] {
    check_unfinished(*optimizer);
    Status status = optimizer->optimizer.step();
    optimizer->begun = !status.ok() && status.fault() != Fault::ended;
    note_overflow(*optimizer, status, {});  // all parts were finite
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
      throw Error("announce_settings",
                  "the step rule is sotto's own: sotto_optimizer_set_learning_rate "
                  "changes its rate");
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
