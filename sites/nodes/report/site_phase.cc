#include <sotto/sites/nodes/report/site_phase.h>

#include <algorithm>
#include <array>
#include <utility>

#include <sotto/base/check.h>

namespace sotto {
namespace {

using NamedPhase = std::pair<SitePhase, std::string_view>;

constexpr auto kPhaseNames = std::to_array<NamedPhase>({
    {SitePhase::starting, "starting"},
    {SitePhase::joining, "joining"},
    {SitePhase::training, "training"},
    {SitePhase::waiting, "waiting"},
    {SitePhase::relaying, "relaying"},
    {SitePhase::done, "done"},
    {SitePhase::failed, "failed"},
});

}  // namespace

std::string_view name_of(SitePhase phase) {
  const auto* const found = std::ranges::find(kPhaseNames, phase, &NamedPhase::first);
  check(found != kPhaseNames.end(), "every phase has a name");
  return found->second;
}

std::span<const SitePhase> site_phases() {
  static const auto phases = [] {
    std::array<SitePhase, kPhaseNames.size()> all{};
    std::ranges::transform(kPhaseNames, all.begin(), &NamedPhase::first);
    return all;
  }();
  return phases;
}

}  // namespace sotto
