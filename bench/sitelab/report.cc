#include "report.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/study/json/fault_report.h>
#include <sotto/study/json/figures.h>
#include <sotto/study/units.h>

namespace sotto::sitelab {
namespace {

Json detections_json(const Detections& seen) {
  const bool any = !seen.seconds.empty();
  return {{"seen", seen.seconds.size()},
          {"missed", seen.missed},
          {"median_s", any ? Json(seen.median()) : Json()},
          {"longest_s", any ? Json(seen.longest()) : Json()}};
}

Json footprint_json(const Footprint& taken) {
  return {{"resident_bytes", taken.resident_bytes}, {"descriptors", taken.descriptors}};
}

std::string detections_text(const Detections& seen) {
  if (seen.seconds.empty()) {
    return "–";
  }
  return fmt::format("after {:.3f} s (median), {:.3f} s at most; {} not", seen.median(),
                     seen.longest(), seen.missed);
}

template <typename Figure>
Json outcomes_json(const RealReport& report, const Figure& figure) {
  Json all = Json::array();
  for (const auto& outcome : report.outcomes) {
    all.push_back(outcome ? Json(figure(*outcome)) : Json());
  }
  return all;
}

Json named_json(const std::vector<NamedLiar>& named) {
  Json all = Json::array();
  for (const NamedLiar& liar : named) {
    all.push_back({{"site", liar.site},
                   {"kind", name_of(liar.kind)},
                   {"neighbours", liar.neighbours},
                   {"log", liar.log},
                   {"status", liar.status},
                   {"metrics", liar.metrics}});
  }
  return all;
}

/// What is told, and the figure.
using Row = std::pair<std::string, std::string>;

}  // namespace

Json to_json(const FaultPlan& plan, const RealReport& report) {
  const Growth& growth = report.growth;
  const bool has_mass = plan.exchange == sites::MixingKind::push_sum;
  return {{"sotto", SOTTO_VERSION},
          {"plan", plan.title},
          {"real", true},
          {"sites", plan.sites},
          {"seed", report.seed},
          {"run_s", report.run_s},
          {"pauses_s", report.pauses_s},
          {"injected", study::injected_json(report.injected)},
          {"starts", report.starts},
          {"rounds", {report.rounds_least, report.rounds_most}},
          {"resets", report.resets},
          {"bound_s", report.bound_s},
          {"worst_recovery_s", report.worst_recovery_s},
          {"worst_leave_s", report.worst_leave_s},
          {"killed_noticed", detections_json(report.killed)},
          {"stopped_noticed", detections_json(report.stopped)},
          {"offences", report.offences},
          {"rounds_of", outcomes_json(report, [](const SiteOutcome& o) { return o.round; })},
          {"accuracy_of", outcomes_json(report, [](const SiteOutcome& o) { return o.accuracy; })},
          {"named", named_json(report.named)},
          {"honest_accused", report.honest_accused},
          {"states_lost", !report.whole},
          {"mass", has_mass ? Json{{"minted", report.mass.minted},
                                   {"held", report.mass.held},
                                   {"under_way", report.mass.under_way},
                                   {"lost", report.mass.lost},
                                   {"worst_error_of_a_site",
                                    report.whole ? Json(report.mass.worst_error) : Json()}}
                            : Json()},
          {"largest_state_bytes", report.largest_state},
          {"footprint",
           {{"samples", growth.samples},
            {"early", footprint_json(growth.early)},
            {"late", footprint_json(growth.late)},
            {"largest", footprint_json(growth.largest)},
            {"flat", study::or_null(growth.flat)}}},
          {"violation", report.violation ? study::violation_json(*report.violation) : Json()}};
}

void show(const FaultPlan& plan, const RealReport& report) {
  fmt::print("{}: {} under {}, real processes for {:.0f} s\n", plan.title,
             study::counted(static_cast<std::uint64_t>(plan.sites), "site"), plan.graph,
             report.run_s);
  const Growth& growth = report.growth;
  const auto memory = [](const Footprint& taken) {
    return fmt::format("{}, {:.1f} descriptors", study::amount(taken.resident_bytes),
                       taken.descriptors);
  };
  std::vector<Row> rows;
  for (const auto& [kind, times] : faults_that_happened(report.injected)) {
    rows.push_back({fmt::format("faults: {}", kind->name), fmt::to_string(times)});
  }
  const std::vector<Row> figures = {
      {"processes started", fmt::to_string(report.starts)},
      {"rounds of a site", fmt::format("{} … {}", report.rounds_least, report.rounds_most)},
      {"states given up", fmt::to_string(report.resets)},
      {"longest recovery",
       fmt::format("{:.2f} s of {:.1f} s allowed", report.worst_recovery_s, report.bound_s)},
      {"longest leave", fmt::format("{:.2f} s", report.worst_leave_s)},
      {"a killed peer is missed", detections_text(report.killed)},
      {"a stopped peer is missed", detections_text(report.stopped)},
      {"offences", fmt::to_string(report.offences)}};
  rows.insert(rows.end(), figures.begin(), figures.end());
  std::optional<double> worst;
  for (const auto& outcome : report.outcomes) {
    if (outcome) {
      worst = std::min(worst.value_or(outcome->accuracy), outcome->accuracy);
    }
  }
  if (worst) {
    rows.push_back({"accuracy of the worst site", fmt::format("{:.2f} %", 100 * *worst)});
  }
  for (const NamedLiar& liar : report.named) {
    rows.push_back({fmt::format("site {} {}", liar.site, name_of(liar.kind)),
                    fmt::format("named by {} of {} neighbours in the log, {} in the status, {} in "
                                "the metrics",
                                liar.log, liar.neighbours, liar.status, liar.metrics)});
  }
  if (!report.named.empty()) {
    rows.push_back({"honest sites accused", fmt::to_string(report.honest_accused)});
  }
  if (plan.exchange == sites::MixingKind::push_sum) {
    rows.push_back(
        {"mass minted, held, under way", fmt::format("{:g}, {:.9f}, {:.9f}", report.mass.minted,
                                                     report.mass.held, report.mass.under_way)});
    if (plan.lies.empty()) {
      rows.push_back({report.whole ? "error of all mass" : "mass lost with states",
                      fmt::format("{:.2e}", report.mass.lost)});
    }
    if (report.whole) {
      rows.push_back({"largest error of a site", fmt::format("{:.2e}", report.mass.worst_error)});
    }
  }
  rows.push_back({"largest state", study::amount(static_cast<double>(report.largest_state))});
  rows.push_back({"a process early in the run", memory(growth.early)});
  rows.push_back({"a process late in the run", memory(growth.late)});
  rows.push_back({"memory and descriptors", !growth.flat   ? "cannot be told"
                                            : *growth.flat ? "flat"
                                                           : "they grow"});
  for (const auto& [what, found] : rows) {
    fmt::print("  {:<30}{}\n", what, found);
  }
}

}  // namespace sotto::sitelab
