// One site: trains on its own data and keeps in touch with its peers, until its rounds
// are over or it is told to stop (docs/sites.md, docs/operations.md).
//
// Whatever ends it, its folder holds a state from which it goes on: after a crash the last one that
// was written, and nothing that is not in it has left.
//
// Thread safety: run_site belongs to one thread; `stop`, the board and the list of peers may be
// used by others meanwhile. Ownership: nothing is kept after it returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/sites/process/site_folder.h>
#include <sotto/sites/process/site_options.h>
#include <sotto/sites/process/site_report.h>
#include <sotto/trainers/result.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// What a site's run came to.
struct SiteResult {
  SiteReport report;                  ///< at its end
  bool stopped = false;               ///< it was told to stop before its rounds were over
  std::vector<HistoryPoint> history;  ///< of this process
  /// The last one of history; NaN: there was none.
  HistoryPoint final = {.loss = std::numeric_limits<double>::quiet_NaN()};
  TimeSplit time;              ///< of this process
  double save_s = 0;           ///< writing its state, of this process
  std::string export_trouble;  ///< why the model's last export failed; empty: it did not
  std::vector<float> parameters;
  std::string parameters_sha256;
};

/// Runs the site, whose `folder` has not been read yet. `board` gets a report now and then;
/// `listener` is called from this thread. Throws Error for options that are refused, or that are
/// not those of the folder's state. A fault says why it could not go on: the state could not be
/// written or read, its address is taken, a gradient is not finite, or a newer process of it runs.
Result<SiteResult> run_site(const SiteOptions& options, SiteFolder& folder, Task& task,
                            const std::atomic<bool>& stop, SiteBoard& board,
                            const SiteListener& listener);

}  // namespace sotto
