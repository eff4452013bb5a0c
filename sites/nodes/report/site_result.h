// What the process of a site, or of another node, came to. Plain values.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include <sotto/sites/nodes/report/site_history.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/trainers/result.h>

namespace sotto {

/// What a site's process came to.
struct SiteResult {
  SiteReport report{};                  ///< report at its end
  bool stopped = false;                 ///< whether it was told to stop before its rounds were over
  std::vector<HistoryPoint> history{};  ///< evaluations of this process
  /// The last one of history; NaN: there was none.
  HistoryPoint final = {.loss = std::numeric_limits<double>::quiet_NaN()};
  TimeSplit time{};              ///< times of this process
  double save_s = 0;             ///< seconds that this process spent on writing its state
  std::string export_trouble{};  ///< reason why the model's last export failed; empty: none failed
  std::string parameters_sha256{};  ///< digest of the parameters, in hexadecimal digits
};

/// The result with this report, these evaluations, times and parameters.
SiteResult site_result(SiteReport report, const SiteHistory& history, const TimeSplit& time,
                       std::span<const float> parameters);

}  // namespace sotto
