// sotto_site: one site with a model and a loop of the caller's own.
#include <atomic>
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/base/json.h>
#include <sotto/base/json_text.h>
#include <sotto/base/unix_time.h>
#include <sotto/optim/algorithm.h>
#include <sotto/sites/process/event_json.h>
#include <sotto/sites/process/site_optimizer.h>
#include <sotto/sites/process/site_settings.h>
#include <sotto/study/json/site_status.h>
#include <sotto/study/site/site_file.h>

#include "guard.h"
#include "handles.h"
#include "setting_pairs.h"

namespace sotto::c {

/// Events that were not read yet: the latest. Thread-safe.
class SiteEvents {
 public:
  void add(const SiteEvent& event) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kMost) {
      waiting_.pop_front();
    }
    waiting_.push_back(event_json(event, unix_time()));
  }
  Json take() {
    const std::lock_guard lock(mutex_);
    Json all = Json::array();
    for (Json& event : std::exchange(waiting_, {})) {
      all.push_back(std::move(event));
    }
    return all;
  }

 private:
  static constexpr std::size_t kMost = 1'000;
  std::mutex mutex_;
  std::deque<Json> waiting_;
};

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
    if (name != "site" && !set(groups, name, value)) {
      refuse_setting(name, names_in(groups),
                     "sotto_list(\"site-settings\") names them, in Python "
                     "sotto.choices(\"site-settings\")");
    }
    return false;
  });
  return read;
}

}  // namespace
}  // namespace sotto::c

struct sotto_site {
  sotto_site(const sotto::SiteSettings& settings, sotto::SiteOptions options,
             std::span<float> parameters, const sotto::ParameterLayout& layout)
      : site(with_stop(options), settings.state, parameters, layout,
             [this](const sotto::SiteEvent& event) { events.add(event); }) {}

  const sotto::SiteOptions& with_stop(sotto::SiteOptions& options) const {
    options.stop = &stop;
    return options;
  }

  std::atomic<bool> stop{false};
  sotto::c::SiteEvents events;
  sotto::SiteOptimizer site;
  std::atomic_flag busy;
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
    const auto model = span_at(parameters, count, "parameters");
    if (model.empty() || model.size() > kMaxDimension) {
      refuse("count", fmt::to_string(count), fmt::format("1 to {} would do", kMaxDimension));
    }
    const SiteSettings read = read_site(settings);
    *out = new sotto_site(read, options_of(read), model,
                          layout == nullptr ? ParameterLayout() : layout->blocks);
    return SOTTO_OK;
  });
}

void sotto_site_destroy(sotto_site* site) { delete site; }

sotto_status sotto_site_connect(sotto_site* site) {
  return in_turn(site, "site", [&] { return site->site.connect(); });
}

sotto_status sotto_site_step(sotto_site* site, const float* gradient, size_t count, double loss,
                             int* outcome) {
  return in_turn(site, "site", [&] {
    return tell(site->site.step(span_at(gradient, count, "gradient"), loss), outcome);
  });
}

sotto_status sotto_site_relay(sotto_site* site, int* outcome) {
  return in_turn(site, "site", [&] { return tell(site->site.relay(), outcome); });
}

sotto_status sotto_site_evaluated(sotto_site* site, double loss, double accuracy) {
  return in_turn(site, "site", [&] {
    site->site.evaluated({.loss = loss, .accuracy = accuracy});
    return Status();
  });
}

sotto_status sotto_site_finish(sotto_site* site) {
  return in_turn(site, "site", [&] { return site->site.finish(); });
}

sotto_status sotto_site_stop(sotto_site* site) {
  return at_any_time(site, "site", [&] { site->stop = true; });
}

sotto_status sotto_site_over(sotto_site* site, int* over) {
  return in_turn(site, "site", [&] {
    need(over, "over");
    *over = site->site.over() ? 1 : 0;
    return Status();
  });
}

sotto_status sotto_site_round(sotto_site* site, uint64_t* round) {
  return in_turn(site, "site", [&] {
    need(round, "round");
    *round = site->site.round();
    return Status();
  });
}

sotto_status sotto_site_next_step(sotto_site* site, uint64_t* step) {
  return in_turn(site, "site", [&] {
    need(step, "step");
    *step = site->site.next_step();
    return Status();
  });
}

sotto_status sotto_site_report(sotto_site* site, char** json) {
  return guarded([&] {
    need(site, "site");
    need(json, "json");
    return give(json_text(study::site_status_json(site->site.report())), json);
  });
}

sotto_status sotto_site_events(sotto_site* site, char** json) {
  return guarded([&] {
    need(site, "site");
    need(json, "json");
    return give(json_text(site->events.take()), json);
  });
}
