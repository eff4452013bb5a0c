#include <sotto/sites/nodes/report/site_history.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace sotto {

void SiteHistory::add(const HistoryPoint& point, const SiteStanding& standing, Observer* observer) {
  if (points_.size() == kMost) {
    points_.erase(points_.begin());
  }
  points_.push_back(point);
  if (observer != nullptr) {
    RunEvaluation evaluation{.point = point, .site = standing};
    evaluation.point.consensus_distance = std::numeric_limits<double>::quiet_NaN();  // who knows
    observer->evaluated(evaluation);
  }
}

std::string SiteHistory::text() const {
  if (points_.empty()) {
    return "";
  }
  const HistoryPoint& point = points_.back();
  const std::string quality = std::isfinite(point.accuracy)
                                  ? fmt::format(", accuracy {:.2f} %", 100 * point.accuracy)
                              : std::isfinite(point.r2) ? fmt::format(", R² {:.4f}", point.r2)
                                                        : "";
  return fmt::format("; test loss {:.4f}{} at round {}", point.loss, quality, point.round);
}

std::vector<SiteFigure> SiteHistory::with_figures(std::vector<SiteFigure> figures) const {
  if (!points_.empty()) {
    const HistoryPoint& point = points_.back();
    figures.push_back({"test_loss", point.loss});
    figures.push_back({"test_accuracy", point.accuracy});
    if (!std::isnan(point.rmse)) {
      figures.push_back({"test_r_squared", point.r2});
      figures.push_back({"test_rmse", point.rmse});
    }
    figures.push_back({"evaluated_round", point.round});
  }
  return figures;
}

SiteEvent SiteHistory::round_event(const sites::SiteState& site,
                                   std::span<const SitePeerReport> peers, double loss) const {
  const auto up =
      std::ranges::count_if(peers, [](const SitePeerReport& peer) { return peer.site.up; });
  SiteEvent event = {.kind = SiteEvent::Kind::round,
                     .text = fmt::format("mass {:.3f}, {} of {} peers in touch", site.settled_mass,
                                         up, peers.size()),
                     .round = site.round,
                     .figures = {{"mass", site.settled_mass},
                                 {"peers_up", static_cast<std::uint64_t>(up)},
                                 {"peers", std::uint64_t{peers.size()}}}};
  if (std::isfinite(loss)) {
    event.text = fmt::format("loss {:.4f}, {}", loss, event.text);
    event.figures.push_back({"loss", loss});
  }
  event.text += text();
  event.figures = with_figures(std::move(event.figures));
  return event;
}

}  // namespace sotto
