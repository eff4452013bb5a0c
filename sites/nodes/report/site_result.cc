#include <sotto/sites/nodes/report/site_result.h>

#include <utility>

#include <sotto/base/digest.h>

namespace sotto {

SiteResult site_result(SiteReport report, const SiteHistory& history, const TimeSplit& time,
                       std::span<const float> parameters) {
  SiteResult result{.report = std::move(report), .history = history.points(), .time = time};
  if (!result.history.empty()) {
    result.final = result.history.back();
  }
  result.parameters_sha256 = sha256_hex(std::as_bytes(parameters));
  return result;
}

}  // namespace sotto
