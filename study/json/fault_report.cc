#include <sotto/study/json/fault_report.h>

#include <string>

#include <sotto/sites/simulated/fault_plan.h>

namespace sotto::study {

Json injected_json(std::span<const std::uint64_t> injected) {
  Json counts = Json::object();
  for (const auto& [kind, times] : faults_that_happened(injected)) {
    counts[std::string(kind->name)] = times;
  }
  return counts;
}

Json violation_json(const SimulatedSiteViolation& violation) {
  return {{"at_s", to_seconds(violation.time)},
          {"site", violation.site},
          {"during", violation.during},
          {"what", violation.what}};
}

}  // namespace sotto::study
