#include <sotto/sites/process/site_guard.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/sites/core/lower_median.h>

namespace sotto {

using sites::Suspect;

std::string SiteGuard::names_of(const std::vector<Suspect>& suspects) const {
  std::vector<std::string> names;
  names.reserve(suspects.size());
  for (const Suspect& suspect : suspects) {
    names.push_back(fmt::format("{} ({:.3g})", site_.peer_name(suspect.peer), suspect.moved));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

bool SiteGuard::put_back(const Status& status) {
  if (status.fault() != Fault::non_finite) {
    return false;
  }
  const auto suspects = site_.put_back();
  if (!suspects) {
    return false;
  }
  ++put_backs_;
  teller_.warn(
      SiteEvent::Kind::model_put_back,
      fmt::format("{}; the model is again what it was before the last parcels, which moved it: {}",
                  status.message(), names_of(*suspects)));
  for (const Suspect& suspect : *suspects) {
    if (suspect.blamed) {
      teller_.warn(
          SiteEvent::Kind::peer_spoils,
          fmt::format(
              "its parcels moved the model by {:.3g}, nine times as far as all others{}",
              suspect.moved,
              suspect.barred ? "; not for the first time: for a while they do not count" : ""),
          site_.peer_name(suspect.peer), {{"moved", suspect.moved}});
    }
  }
  return true;
}

void SiteGuard::look_at(double loss) {
  if (!std::isfinite(loss)) {
    return;
  }
  const auto influences = site_.influences();
  const double moved =
      std::accumulate(influences.begin(), influences.end(), 0.0,
                      [](double sum, const Suspect& suspect) { return sum + suspect.moved; });
  const double largest =
      intakes_.empty() ? 0 : std::ranges::max_element(intakes_, {}, &Intake::loss)->loss;
  const double usual = sites::lower_median(intakes_, &Intake::moved);
  if (intakes_.size() >= kEnough && loss > kJump * largest && moved > kMoved * usual) {
    ++jumps_;
    teller_.warn(
        SiteEvent::Kind::loss_jump,
        fmt::format("the loss is {:.4g} after what came last, and was {:.4g} at most in the {} "
                    "rounds before; the model was moved by: {}",
                    loss, largest, intakes_.size(), names_of(influences)),
        {}, {{"loss", loss}});
  }
  intakes_.push_back({.loss = loss, .moved = moved});
  if (intakes_.size() > kRemembered) {
    intakes_.pop_front();
  }
}

}  // namespace sotto
