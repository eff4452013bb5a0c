#include <sotto/study/simulation/fault_summary.h>

#include <algorithm>

namespace sotto::study {

FaultSummary summary_of(std::span<const SimulatedSitesReport> reports) {
  FaultSummary all;
  for (const SimulatedSitesReport& report : reports) {
    all.rounds_least =
        all.runs == 0 ? report.rounds_least : std::min(all.rounds_least, report.rounds_least);
    ++all.runs;
    for (std::size_t i = 0; i < all.injected.size(); ++i) {
      all.injected[i] += report.injected[i];
    }
    all.events += report.events;
    all.resets += report.resets;
    all.rounds_most = std::max(all.rounds_most, report.rounds_most);
    all.worst_recovery = std::max(all.worst_recovery, report.worst_recovery);
    all.worst_mass_error = std::max(all.worst_mass_error, report.worst_mass_error);
    all.worst_error = std::max(all.worst_error, report.error);
    all.put_backs += report.put_backs;
    all.cuts += report.cuts;
    all.habits += report.habits;
    all.most_pending = std::max(all.most_pending, report.most_pending);
    all.largest_state = std::max(all.largest_state, report.largest_state);
  }
  return all;
}

}  // namespace sotto::study
