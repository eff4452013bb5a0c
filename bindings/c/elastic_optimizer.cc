// sotto_elastic_optimizer: one node of an all-reduce whose nodes come and go, with a model and a
// loop of the caller's own.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/sites/elastic/elastic_settings.h>
#include <sotto/sites/nodes/torchrun_node.h>

#include "guard.h"
#include "handles.h"
#include "node_extras.h"
#include "node_handle.h"
#include "setting_pairs.h"

namespace sotto::c {
namespace {

/// What a node is given.
struct GivenNode {
  ElasticSettings settings;
  NodeExtras extras;
};

/// Throws Error for settings that are missing.
void complete(ElasticSettings& read) {
  if (read.roster.nodes.empty()) {
    throw Error("nodes", "it is missing: " + node_range_rule());
  }
  if (const auto torchrun = read.roster.seeds.empty() ? read_torchrun() : std::nullopt) {
    take_torchrun(read, *torchrun);
  }
  if (read.roster.seeds.empty()) {
    throw Error("seeds",
                "it is missing: HOST:PORT of nodes that newcomers ask who is there, or a store: "
                "file:DIR, redis://HOST:PORT/PREFIX or torch://HOST:PORT/PREFIX; or start the "
                "program with torchrun");
  }
}

GivenNode read_node(const char* const* settings) {
  GivenNode read;
  const auto groups = settings_of(read.settings);
  read_pairs(settings, [&](const std::string& name, const char* value) {
    if (!take_job_entry(name, value, read.extras.job)) {
      set_listed(groups, kElasticSettings, name, value);
    }
    read.extras.given.push_back(name);
    return false;
  });
  complete(read.settings);
  return read;
}

}  // namespace
}  // namespace sotto::c

struct sotto_elastic_optimizer : sotto::c::NodeHandle<sotto::ElasticOptimizer> {
  static constexpr std::string_view kKind = "elastic_optimizer";
  using NodeHandle::NodeHandle;
};

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

namespace {

sotto_elastic_optimizer* make_node(const sotto_optimizer_setup& setup, const char* const* settings,
                                   std::span<float> model) {
  require_for_nodes(setup);
  const GivenNode read = read_node(settings);
  auto node = std::make_unique<sotto_elastic_optimizer>(
      with_extras(options_of(read.settings), read.extras, setup.step_rule), read.settings.outputs,
      [&](const ElasticOptions& options, SiteListener listener) {
        return ElasticOptimizer(options, model, setup.layout, std::move(listener));
      });
  node->rule = setup.step_rule;
  return node.release();
}

/// What a step has come to, where the caller wants to know.
Status tell(const Result<ElasticStep>& step, uint64_t* round, int* outcome) {
  if (step.ok() && round != nullptr) {
    *round = step->round;
  }
  if (step.ok() && outcome != nullptr) {
    *outcome = step->left_out ? SOTTO_ELASTIC_LEFT_OUT : step->local ? SOTTO_ELASTIC_LOCAL_STEP : 0;
  }
  return step.status();
}

}  // namespace

sotto_status sotto_elastic_optimizer_create(const char* const* settings, float* parameters,
                                            size_t count, const sotto_layout* layout,
                                            sotto_elastic_optimizer** out) {
  return guarded([&] {
    need(out, "out");
    sotto_optimizer_setup setup;
    setup.layout = blocks_of(layout);
    *out = make_node(setup, settings, model_at(parameters, count));
    return SOTTO_OK;
  });
}

sotto_status sotto_elastic_optimizer_create_from(const sotto_optimizer_setup* setup,
                                                 const char* const* settings, float* parameters,
                                                 size_t count, sotto_elastic_optimizer** out) {
  return guarded([&] {
    need(setup, "setup");
    need(out, "out");
    *out = make_node(*setup, settings, model_at(parameters, count));
    return SOTTO_OK;
  });
}

void sotto_elastic_optimizer_destroy(sotto_elastic_optimizer* optimizer) { delete optimizer; }

sotto_status sotto_elastic_optimizer_connect(sotto_elastic_optimizer* optimizer) {
  return in_turn(optimizer, [&] { return optimizer->node.connect(); });
}

sotto_status sotto_elastic_optimizer_step(sotto_elastic_optimizer* optimizer, const float* gradient,
                                          size_t count, double loss, uint64_t* round,
                                          int* outcome) {
  return in_turn(optimizer, [&] {
    return tell(optimizer->node.step(span_at(gradient, count, "gradient"), loss), round, outcome);
  });
}

sotto_status sotto_elastic_optimizer_takes_parts(sotto_elastic_optimizer* optimizer, int* takes) {
  return in_turn(optimizer, [&] {
    need(takes, "takes");
    *takes = optimizer->node.takes_parts() ? 1 : 0;
    return SOTTO_OK;
  });
}

sotto_status sotto_elastic_optimizer_gradient_part(sotto_elastic_optimizer* optimizer, size_t first,
                                                   const float* part, size_t count) {
  return in_turn(optimizer, [&] {
    return optimizer->node.gradient_part(first, span_at(part, count, "part"));
  });
}

sotto_status sotto_elastic_optimizer_step_by_parts(sotto_elastic_optimizer* optimizer, double loss,
                                                   uint64_t* round, int* outcome) {
  return in_turn(optimizer,
                 [&] { return tell(optimizer->node.step_by_parts(loss), round, outcome); });
}

sotto_status sotto_elastic_optimizer_wait(sotto_elastic_optimizer* optimizer, uint64_t* round,
                                          int* outcome) {
  return in_turn(optimizer, [&] { return tell(optimizer->node.wait(), round, outcome); });
}

sotto_status sotto_elastic_optimizer_cancel(sotto_elastic_optimizer* optimizer) {
  return at_any_time(optimizer, [&] { optimizer->node.cancel(); });
}

sotto_status sotto_elastic_optimizer_evaluated(sotto_elastic_optimizer* optimizer, double loss,
                                               double accuracy) {
  return evaluate(optimizer, loss, accuracy);
}

sotto_status sotto_elastic_optimizer_finish(sotto_elastic_optimizer* optimizer) {
  return in_turn(optimizer, [&] { return ended(*optimizer, optimizer->node.finish()); });
}

sotto_status sotto_elastic_optimizer_stop(sotto_elastic_optimizer* optimizer) {
  return at_any_time(optimizer, [&] { optimizer->request_stop(); });
}

sotto_status sotto_elastic_optimizer_over(sotto_elastic_optimizer* optimizer, int* over) {
  return tell_over(optimizer, over);
}

sotto_status sotto_elastic_optimizer_round(sotto_elastic_optimizer* optimizer, uint64_t* round) {
  return tell_round(optimizer, round);
}

sotto_status sotto_elastic_optimizer_next_step(sotto_elastic_optimizer* optimizer, uint64_t* step) {
  return tell_next_step(optimizer, step);
}

sotto_status sotto_elastic_optimizer_report(sotto_elastic_optimizer* optimizer, char** json) {
  return give_report(optimizer, json);
}

sotto_status sotto_elastic_optimizer_events(sotto_elastic_optimizer* optimizer, char** json) {
  return give_events(optimizer, json);
}
