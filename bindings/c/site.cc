// sotto_site: one site with a model and a loop of the caller's own.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/sites/process/site_optimizer.h>
#include <sotto/sites/process/site_settings.h>
#include <sotto/study/site/site_file.h>

#include "guard.h"
#include "handles.h"
#include "node_extras.h"
#include "node_handle.h"
#include "setting_pairs.h"

namespace sotto::c {
namespace {

/// What a site is given. The file that the setting `site` names is where the others begin.
struct GivenSite {
  SiteSettings settings;
  NodeExtras extras;
};

GivenSite read_site(const char* const* settings) {
  GivenSite read;
  read_pairs(settings, [&](const std::string& name, const char* value) {
    if (name == "site") {
      read.settings = study::read_site_file(value);
    }
    return false;
  });
  const auto groups = settings_of(read.settings);
  read_pairs(settings, [&](const std::string& name, const char* value) {
    if (name != "site" && !take_job_entry(name, value, read.extras.job)) {
      set_listed(groups, kSiteSettings, name, value);
    }
    read.extras.given.push_back(name);
    return false;
  });
  return read;
}

}  // namespace
}  // namespace sotto::c

struct sotto_site : sotto::c::NodeHandle<sotto::SiteOptimizer> {
  static constexpr std::string_view kKind = "site";
  using NodeHandle::NodeHandle;
};

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

namespace {

sotto_site* make_site(const sotto_optimizer_setup& setup, const char* const* settings,
                      std::span<float> model) {
  require_for_nodes(setup);
  const GivenSite read = read_site(settings);
  auto site = std::make_unique<sotto_site>(
      with_extras(options_of(read.settings), read.extras, setup.step_rule), read.settings.outputs,
      [&](const SiteOptions& options, SiteListener listener) {
        return SiteOptimizer(options, state_of(read.settings), model, setup.layout,
                             std::move(listener));
      });
  site->rule = setup.step_rule;
  return site.release();
}

/// What a step has come to, as the caller's flags.
Status tell(const Result<SiteStep>& step, int* outcome) {
  if (step.ok() && outcome != nullptr) {
    *outcome =
        (step->exchanged ? SOTTO_SITE_EXCHANGED : 0) | (step->dropped ? SOTTO_SITE_DROPPED : 0);
  }
  return step.status();
}

}  // namespace

sotto_status sotto_site_create(const char* const* settings, float* parameters, size_t count,
                               const sotto_layout* layout, sotto_site** out) {
  return guarded([&] {
    need(out, "out");
    sotto_optimizer_setup setup;
    setup.layout = blocks_of(layout);
    *out = make_site(setup, settings, model_at(parameters, count));
    return SOTTO_OK;
  });
}

sotto_status sotto_site_create_from(const sotto_optimizer_setup* setup, const char* const* settings,
                                    float* parameters, size_t count, sotto_site** out) {
  return guarded([&] {
    need(setup, "setup");
    need(out, "out");
    *out = make_site(*setup, settings, model_at(parameters, count));
    return SOTTO_OK;
  });
}

void sotto_site_destroy(sotto_site* site) { delete site; }

sotto_status sotto_site_connect(sotto_site* site) {
  return in_turn(site, [&] { return site->node.connect(); });
}

sotto_status sotto_site_step(sotto_site* site, const float* gradient, size_t count, double loss,
                             int* outcome) {
  return in_turn(site, [&] {
    return tell(site->node.step(span_at(gradient, count, "gradient"), loss), outcome);
  });
}

sotto_status sotto_site_relay(sotto_site* site, int* outcome) {
  return in_turn(site, [&] { return tell(site->node.relay(), outcome); });
}

sotto_status sotto_site_evaluated(sotto_site* site, double loss, double accuracy) {
  return evaluate(site, loss, accuracy);
}

sotto_status sotto_site_finish(sotto_site* site) {
  return in_turn(site, [&] { return ended(*site, site->node.finish()); });
}

sotto_status sotto_site_leave(sotto_site* site) {
  return in_turn(site, [&] { return ended(*site, site->node.leave()); });
}

sotto_status sotto_site_stop(sotto_site* site) {
  return at_any_time(site, [&] { site->request_stop(); });
}

sotto_status sotto_site_over(sotto_site* site, int* over) { return tell_over(site, over); }

sotto_status sotto_site_round(sotto_site* site, uint64_t* round) { return tell_round(site, round); }

sotto_status sotto_site_next_step(sotto_site* site, uint64_t* step) {
  return tell_next_step(site, step);
}

sotto_status sotto_site_report(sotto_site* site, char** json) { return give_report(site, json); }

sotto_status sotto_site_events(sotto_site* site, char** json) { return give_events(site, json); }
