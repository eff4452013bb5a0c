// What a site tells of itself while it runs: events, reports, evaluations, and the model for other
// programs.
//
// Thread safety: one thread at a time, but for report(), which any may ask. Ownership: the parts of
// the site are the caller's and must outlive it.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/sites/core/conduct/patience.h>
#include <sotto/sites/nodes/report/site_history.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/process/report/site_teller.h>
#include <sotto/sites/process/site_connections.h>
#include <sotto/sites/process/site_guard.h>
#include <sotto/sites/process/site_parts.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// A listener that may be called whether there is one or not; in a run by roster it is not told of
/// a list that is empty until the roster fills it.
SiteListener heard_listener(SiteListener listener, bool by_roster);

class SiteReporter {
 public:
  /// Has `teller` tell of events.
  SiteReporter(const SiteParts& parts, const SiteConnections& connections, const SiteGuard& guard,
               const sites::Patience& patience, SiteTeller teller);

  /// Tells an event, with the site's round.
  void tell(SiteEvent::Level level, SiteEvent::Kind kind, std::string text,
            std::vector<SiteFigure> figures = {}) const {
    teller_.tell(level, kind, std::move(text), {}, std::move(figures));
  }
  /// Tells once that no gradient may leave any more, as soon as that is so.
  void tell_of_budget();
  /// A round is over: it is in the report at once, and told by tell_of_round.
  void round_done();
  /// Tells of the last round if it has not been told, and the one before was long enough ago.
  void tell_of_round();

  /// What the site is at. A report follows if the last was long ago.
  void enter(SitePhase phase);
  SitePhase phase() const { return phase_; }
  /// Makes a report: at once, or if the last one was long enough ago.
  void refresh(bool now);
  /// The newest report. Any thread may ask.
  SiteReport report() const { return board_.get(); }
  /// A report as of now.
  SiteReport present() const;

  /// Notes how good the model is, once a round, and exports it.
  void evaluated(const Evaluation& quality);
  /// Writes the model for other programs, where the options want it.
  void export_model();
  /// The evaluations of this process.
  const SiteHistory& history() const { return history_; }
  /// Why the last export failed; empty: it did not.
  const std::string& export_trouble() const { return export_trouble_; }
  /// When this process began.
  std::chrono::steady_clock::time_point began() const { return began_; }

 private:
  using Clock = std::chrono::steady_clock;

  const SiteParts& parts_;
  const SiteConnections& connections_;
  const SiteGuard& guard_;
  const sites::Patience& patience_;
  const SiteTeller teller_;
  SitePhase phase_ = SitePhase::starting;
  const Clock::time_point began_ = Clock::now();
  const double started_at_;
  Clock::time_point reported_{};
  Clock::time_point told_{};
  bool round_to_tell_ = false;
  bool told_of_budget_ = false;
  SiteHistory history_;
  std::string export_trouble_;
  std::string exported_;  ///< digest of the parameters that went out last
  SiteBoard board_;
};

/// Where a site begins, in words: at the model of one of its peers, or at its own, and in which
/// round. `alone`: no peer is up; `own_model`: it is one that the site had written.
std::string words_of_beginning(const sites::SiteState& state, bool alone, bool own_model);

}  // namespace sotto
