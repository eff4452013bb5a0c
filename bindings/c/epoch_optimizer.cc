// sotto_epoch_optimizer: one node of an all-reduce whose nodes come and go, with a model and a loop
// of the caller's own.
#include <string>
#include <string_view>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/sites/live/epoch_optimizer.h>
#include <sotto/sites/live/epoch_settings.h>

#include "elastic_node.h"
#include "guard.h"
#include "handles.h"
#include "setting_pairs.h"

namespace sotto::c {
namespace {

EpochSettings read_epochs(const char* const* settings) {
  EpochSettings read;
  const auto groups = settings_of(read);
  read_pairs(
      settings, [](const char* name) { return dashed(name); },
      [&](const std::string& name, const char* value) {
        set_listed(groups, kEpochSettings, name, value);
        return false;
      });
  if (read.roster.nodes.empty()) {
    throw Error("nodes", "it is missing: " + node_range_rule());
  }
  if (read.roster.seeds.empty()) {
    throw Error("seeds",
                "it is missing: HOST:PORT of nodes that newcomers ask who is there, or a store: "
                "file:DIR or redis://HOST:PORT/PREFIX");
  }
  return read;
}

}  // namespace
}  // namespace sotto::c

struct sotto_epoch_optimizer : sotto::c::ElasticNode<sotto::EpochOptimizer> {
  static constexpr std::string_view kKind = "epoch_optimizer";
  using ElasticNode::ElasticNode;
};

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

namespace {

/// What a step has come to, where the caller wants to know.
Status tell(const Result<EpochStep>& step, uint64_t* round, int* outcome) {
  if (step.ok() && round != nullptr) {
    *round = step->round;
  }
  if (step.ok() && outcome != nullptr) {
    *outcome = step->left_out ? SOTTO_EPOCH_LEFT_OUT : step->local ? SOTTO_EPOCH_LOCAL_STEP : 0;
  }
  return step.status();
}

}  // namespace

sotto_status sotto_epoch_optimizer_create(const char* const* settings, float* parameters,
                                          size_t count, const sotto_layout* layout,
                                          sotto_epoch_optimizer** out) {
  return guarded([&] {
    need(out, "out");
    const auto model = model_at(parameters, count);
    const EpochSettings read = read_epochs(settings);
    *out = new sotto_epoch_optimizer(
        options_of(read), read.outputs, [&](const EpochOptions& options, SiteListener listener) {
          return EpochOptimizer(options, model, blocks_of(layout), std::move(listener));
        });
    return SOTTO_OK;
  });
}

void sotto_epoch_optimizer_destroy(sotto_epoch_optimizer* optimizer) { delete optimizer; }

sotto_status sotto_epoch_optimizer_connect(sotto_epoch_optimizer* optimizer) {
  return in_turn(optimizer, [&] { return optimizer->node.connect(); });
}

sotto_status sotto_epoch_optimizer_step(sotto_epoch_optimizer* optimizer, const float* gradient,
                                        size_t count, double loss, uint64_t* round, int* outcome) {
  return in_turn(optimizer, [&] {
    return tell(optimizer->node.step(span_at(gradient, count, "gradient"), loss), round, outcome);
  });
}

sotto_status sotto_epoch_optimizer_takes_parts(sotto_epoch_optimizer* optimizer, int* takes) {
  return in_turn(optimizer, [&] {
    need(takes, "takes");
    *takes = optimizer->node.takes_parts() ? 1 : 0;
    return SOTTO_OK;
  });
}

sotto_status sotto_epoch_optimizer_gradient_part(sotto_epoch_optimizer* optimizer, size_t first,
                                                 const float* part, size_t count) {
  return in_turn(optimizer, [&] {
    return optimizer->node.gradient_part(first, span_at(part, count, "part"));
  });
}

sotto_status sotto_epoch_optimizer_step_by_parts(sotto_epoch_optimizer* optimizer, double loss,
                                                 uint64_t* round, int* outcome) {
  return in_turn(optimizer,
                 [&] { return tell(optimizer->node.step_by_parts(loss), round, outcome); });
}

sotto_status sotto_epoch_optimizer_wait(sotto_epoch_optimizer* optimizer, uint64_t* round,
                                        int* outcome) {
  return in_turn(optimizer, [&] { return tell(optimizer->node.wait(), round, outcome); });
}

sotto_status sotto_epoch_optimizer_cancel(sotto_epoch_optimizer* optimizer) {
  return at_any_time(optimizer, [&] { optimizer->node.cancel(); });
}

sotto_status sotto_epoch_optimizer_evaluated(sotto_epoch_optimizer* optimizer, double loss,
                                             double accuracy) {
  return evaluate(optimizer, loss, accuracy);
}

sotto_status sotto_epoch_optimizer_finish(sotto_epoch_optimizer* optimizer) {
  return in_turn(optimizer, [&] { return optimizer->node.finish(); });
}

sotto_status sotto_epoch_optimizer_stop(sotto_epoch_optimizer* optimizer) {
  return at_any_time(optimizer, [&] { optimizer->request_stop(); });
}

sotto_status sotto_epoch_optimizer_over(sotto_epoch_optimizer* optimizer, int* over) {
  return tell_over(optimizer, over);
}

sotto_status sotto_epoch_optimizer_round(sotto_epoch_optimizer* optimizer, uint64_t* round) {
  return tell_round(optimizer, round);
}

sotto_status sotto_epoch_optimizer_next_step(sotto_epoch_optimizer* optimizer, uint64_t* step) {
  return tell_next_step(optimizer, step);
}

sotto_status sotto_epoch_optimizer_report(sotto_epoch_optimizer* optimizer, char** json) {
  return give_report(optimizer, json);
}

sotto_status sotto_epoch_optimizer_events(sotto_epoch_optimizer* optimizer, char** json) {
  return give_events(optimizer, json);
}
