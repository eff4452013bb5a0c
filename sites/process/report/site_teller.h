// Tells a site's listener what happens, each event with the site's round.
//
// Thread safety: one thread at a time. Ownership: the site is the caller's and must outlive it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sotto/sites/core/site.h>
#include <sotto/sites/nodes/report/site_event.h>

namespace sotto {

class SiteTeller {
 public:
  /// Tells `listener`, which there must be.
  SiteTeller(const sites::Site& site, SiteListener listener)
      : site_(site), listener_(std::move(listener)) {}

  /// Tells an event, which takes place in the site's round.
  void tell(SiteEvent event) const {
    event.round = site_.round();
    listener_(event);
  }
  /// Tells an event of this level.
  void tell(SiteEvent::Level level, SiteEvent::Kind kind, std::string text, std::string peer = {},
            std::vector<SiteFigure> figures = {}) const {
    tell({level, kind, std::move(text), std::move(peer), {}, std::move(figures)});
  }
  /// Tells a warning.
  void warn(SiteEvent::Kind kind, std::string text, std::string peer = {},
            std::vector<SiteFigure> figures = {}) const {
    tell(SiteEvent::Level::warning, kind, std::move(text), std::move(peer), std::move(figures));
  }

 private:
  const sites::Site& site_;
  SiteListener listener_;
};

}  // namespace sotto
