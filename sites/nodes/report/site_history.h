// What a site has come to, for its operator: its newest evaluations, how a round is told, and its
// model for other programs.
//
// Thread safety: one thread at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/trainers/result.h>

namespace sotto {

class SiteHistory {
 public:
  /// Adds a point and passes it to `observer`, unless null.
  void add(const HistoryPoint& point, const SiteStanding& standing, Observer* observer);

  const std::vector<HistoryPoint>& points() const { return points_; }
  /// Null before the first.
  const HistoryPoint* last() const { return points_.empty() ? nullptr : &points_.back(); }
  /// Whether this round has been evaluated.
  bool reaches(Round round) const { return !points_.empty() && points_.back().round == round; }

  /// "; test loss 0.1234, accuracy 98.00 % at round 100", or nothing before the first.
  std::string text() const;
  /// Appends the figures of the last evaluation to `figures`.
  std::vector<SiteFigure> with_figures(std::vector<SiteFigure> figures) const;
  /// How the site stands after a round.
  SiteEvent round_event(const sites::SiteState& site, std::span<const SitePeerReport> peers,
                        double loss) const;

 private:
  static constexpr std::size_t kMost = 4096;

  std::vector<HistoryPoint> points_;
};

}  // namespace sotto
