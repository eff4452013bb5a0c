#include "faults_real.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/local_processes.h>

#include "injected.h"
#include "output.h"
#include "real_federation.h"
#include "signals.h"
#include "terminal/progress_line.h"
#include "units.h"

namespace sotto::cli {
namespace {

/// Seconds between lines where there is no terminal.
constexpr double kLineEvery = 30;

/// How a run stands: on one line of a terminal, elsewhere on a line now and then.
class Standing {
 public:
  Standing(bool wanted, double duration_s)
      : wanted_(wanted), line_(wanted), duration_s_(duration_s) {}

  void draw(const RealProgress& now) {
    const auto text =
        fmt::format("{:.0f} of {:.0f} s: {}, {} of them run, at rounds {} to {}", now.run_s,
                    duration_s_, counted(now.faults, "fault"),
                    counted(static_cast<std::uint64_t>(now.running), "site"), now.least, now.most);
    if (!line_.text(text) && wanted_ && now.run_s >= due_) {
      due_ = now.run_s + kLineEvery;
      fmt::print(stderr, "{}\n", text);
    }
  }

 private:
  bool wanted_;
  ProgressLine line_;
  double duration_s_;
  double due_ = kLineEvery;
};

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

Json to_json(const FaultPlan& plan, const RealReport& report) {
  Json violation;
  if (report.violation) {
    violation = {{"at_s", to_seconds(report.violation->time)},
                 {"site", report.violation->site},
                 {"during", report.violation->during},
                 {"what", report.violation->what}};
  }
  const Growth& growth = report.growth;
  const bool has_mass = plan.exchange == sites::MixingKind::push_sum;
  return {{"sotto", SOTTO_VERSION},
          {"plan", plan.title},
          {"real", true},
          {"sites", plan.sites},
          {"seed", report.seed},
          {"run_s", report.run_s},
          {"pauses_s", report.pauses_s},
          {"injected", injected_json(report.injected)},
          {"starts", report.starts},
          {"rounds", {report.rounds_least, report.rounds_most}},
          {"resets", report.resets},
          {"bound_s", report.bound_s},
          {"worst_recovery_s", report.worst_recovery_s},
          {"worst_leave_s", report.worst_leave_s},
          {"killed_noticed", detections_json(report.killed)},
          {"stopped_noticed", detections_json(report.stopped)},
          {"offences", report.offences},
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
            {"flat", growth.flat ? Json(*growth.flat) : Json()}}},
          {"violation", violation}};
}

std::string detections_text(const Detections& seen) {
  if (seen.seconds.empty()) {
    return "–";
  }
  return fmt::format("after {} (median), {} at most; {} not", duration_text(seen.median()),
                     duration_text(seen.longest()), seen.missed);
}

void show(const FaultPlan& plan, const RealReport& report, const Output& output) {
  output.line(fmt::format("{}: {} under {}, real processes for {:.0f} s", plan.title,
                          counted(static_cast<std::uint64_t>(plan.sites), "site"), plan.graph,
                          report.run_s));
  const std::uint64_t all = show_injected(report.injected, output);
  const Growth& growth = report.growth;
  const auto memory = [](const Footprint& taken) {
    return fmt::format("{}, {:.1f} descriptors", amount(taken.resident_bytes), taken.descriptors);
  };
  std::vector<std::vector<std::string>> rows = {
      {"faults", fmt::to_string(all)},
      {"processes started", fmt::to_string(report.starts)},
      {"rounds of a site", fmt::format("{} … {}", report.rounds_least, report.rounds_most)},
      {"states given up", fmt::to_string(report.resets)},
      {"longest recovery",
       fmt::format("{:.2f} s of {:.1f} s allowed", report.worst_recovery_s, report.bound_s)},
      {"longest leave", fmt::format("{:.2f} s", report.worst_leave_s)},
      {"a killed peer is missed", detections_text(report.killed)},
      {"a stopped peer is missed", detections_text(report.stopped)},
      {"offences", fmt::to_string(report.offences)}};
  if (plan.exchange == sites::MixingKind::push_sum) {
    rows.push_back(
        {"mass minted, held, under way", fmt::format("{:g}, {:.9f}, {:.9f}", report.mass.minted,
                                                     report.mass.held, report.mass.under_way)});
    rows.push_back({report.whole ? "error of all mass" : "mass lost with states",
                    fmt::format("{:.2e}", report.mass.lost)});
    if (report.whole) {
      rows.push_back({"largest error of a site", fmt::format("{:.2e}", report.mass.worst_error)});
    }
  }
  rows.push_back({"largest state", amount(static_cast<double>(report.largest_state))});
  rows.push_back({"a process early in the run", memory(growth.early)});
  rows.push_back({"a process late in the run", memory(growth.late)});
  rows.push_back({"memory and descriptors", !growth.flat   ? "cannot be told"
                                            : *growth.flat ? "flat"
                                                           : "they grow"});
  output.table({"what", "found"}, rows);
}

/// A folder that is to be kept, made.
std::string make_folder(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::create_directories(path, code)) {
    refuse("--keep", path, "it must name a folder that can be made and is not there yet");
  }
  return std::filesystem::absolute(path).string();
}

}  // namespace

int run_faults_real(const FaultPlan& plan, const CommonOptions& common, const std::string& keep) {
  check_real(plan);
  const Output output(common);
  std::optional<PrivateDirectory> temporary;
  if (keep.empty()) {
    temporary.emplace();
  }
  const std::string folder = temporary ? temporary->path() : make_folder(keep);
  catch_stop_signals();
  RealReport report;
  {
    Standing line(output.talks(), to_seconds(plan.duration));
    report = run_real_federation(plan, {.seed = common.seed,
                                        .folder = folder,
                                        .progress = [&](const auto& now) { line.draw(now); },
                                        .stop = [] { return stop_requested().load(); }});
  }
  if (stop_requested()) {
    say("interrupted");
    return kFailed;
  }
  show(plan, report, output);
  output.json(to_json(plan, report));
  if (!report.violation) {
    output.line("everything held");
    return kDone;
  }
  const SimulatedSiteViolation& violation = *report.violation;
  say(fmt::format(
      "seed {}, at {:.3f} s: {}: {}{}", report.seed, to_seconds(violation.time), violation.during,
      violation.site >= 0 ? fmt::format("site {} ", violation.site) : "", violation.what));
  if (keep.empty()) {
    say("--keep FOLDER keeps the sites' files and logs");
  }
  return kFailed;
}

}  // namespace sotto::cli
