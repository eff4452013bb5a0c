#include <sotto/sites/process/site_phase.h>

#include <array>

namespace sotto {
namespace {

constexpr std::array kPhases = {SitePhase::starting, SitePhase::joining,  SitePhase::training,
                                SitePhase::waiting,  SitePhase::relaying, SitePhase::done,
                                SitePhase::failed};

}  // namespace

std::string_view name_of(SitePhase phase) {
  switch (phase) {
    case SitePhase::starting:
      return "starting";
    case SitePhase::joining:
      return "joining";
    case SitePhase::training:
      return "training";
    case SitePhase::waiting:
      return "waiting";
    case SitePhase::relaying:
      return "relaying";
    case SitePhase::done:
      return "done";
    case SitePhase::failed:
      return "failed";
  }
  return "";
}

std::span<const SitePhase> site_phases() { return kPhases; }

}  // namespace sotto
