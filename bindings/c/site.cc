// sotto_site: one site with a model and a loop of the caller's own.
#include <string>
#include <string_view>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/sites/process/site_optimizer.h>
#include <sotto/sites/process/site_settings.h>
#include <sotto/study/site/site_file.h>

#include "guard.h"
#include "handles.h"
#include "node_handle.h"
#include "setting_pairs.h"

namespace sotto::c {
namespace {

/// The file that the setting `site` names is where the others begin.
SiteSettings read_site(const char* const* settings) {
  SiteSettings read;
  const auto plain = [](const char* name) { return dashed(name); };
  read_pairs(settings, plain, [&](const std::string& name, const char* value) {
    if (name == "site") {
      read = study::read_site_file(value);
    }
    return false;
  });
  const auto groups = settings_of(read);
  read_pairs(settings, plain, [&](const std::string& name, const char* value) {
    if (name != "site") {
      set_listed(groups, kSiteSettings, name, value);
    }
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
    const auto model = model_at(parameters, count);
    const SiteSettings read = read_site(settings);
    *out = new sotto_site(options_of(read), read.outputs,
                          [&](const SiteOptions& options, SiteListener listener) {
                            return SiteOptimizer(options, state_of(read), model, blocks_of(layout),
                                                 std::move(listener));
                          });
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
  return in_turn(site, [&] { return site->node.finish(); });
}

sotto_status sotto_site_leave(sotto_site* site) {
  return in_turn(site, [&] { return site->node.leave(); });
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
