#include <sotto/study/json/fault_report.h>

#include <string>
#include <utility>

namespace sotto::study {
namespace {

Json seed_json(const SimulatedSitesReport& report) {
  return {{"seed", report.seed},
          {"events", report.events},
          {"rounds", {report.rounds_least, report.rounds_most}},
          {"worst_recovery_s", to_seconds(report.worst_recovery)},
          {"worst_mass_error", report.worst_mass_error},
          {"error_of_models", report.error},
          {"pulls_cut", report.cuts},
          {"models_put_back", report.put_backs},
          {"minted", report.minted},
          {"lost", report.lost},
          {"trace_sha256", report.trace_sha256}};
}

/// The violation of the seed that failed; null without one.
Json failure_json(std::span<const SimulatedSitesReport> reports) {
  if (reports.empty() || !reports.back().violation) {
    return nullptr;
  }
  Json json = {{"seed", reports.back().seed}};
  json.update(violation_json(*reports.back().violation));
  return json;
}

}  // namespace

Json faults_json(const FaultPlan& plan, const FaultSummary& summary,
                 std::span<const SimulatedSitesReport> reports) {
  Json runs = Json::array();
  for (const SimulatedSitesReport& report : reports) {
    runs.push_back(seed_json(report));
  }
  return {{"sotto", SOTTO_VERSION},
          {"plan", plan.title},
          {"sites", plan.sites},
          {"seeds", summary.runs},
          {"injected", injected_json(summary.injected)},
          {"events", summary.events},
          {"resets", summary.resets},
          {"rounds_least", summary.rounds_least},
          {"worst_recovery_s", to_seconds(summary.worst_recovery)},
          {"worst_mass_error", summary.worst_mass_error},
          {"worst_error_of_models", summary.worst_error},
          {"pulls_cut", summary.cuts},
          {"models_put_back", summary.put_backs},
          {"peers_to_ask_about", summary.habits},
          {"most_pending", summary.most_pending},
          {"largest_state_bytes", summary.largest_state},
          {"violation", failure_json(reports)},
          {"runs", std::move(runs)}};
}

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
