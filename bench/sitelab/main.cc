// `sitelab`: a plan of faults on real sites, processes of `sotto node` on this machine.
//
//   build/bench/sitelab examples/faults/real-minute.toml [--seed N] [--json FILE] [--keep FOLDER]
//
// A site that the plan says lies is another process of this program, with `--lie SITE`.
//
// Ends with 0 when everything held, 1 when something did not, 2 for a plan or an option that cannot
// be, and 130 when it was interrupted. What is looked at: docs/faults.md.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/error.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/study/scenario/fault_file.h>
#include <sotto/trainers/launch/private_directory.h>

#include "bench/support/command_line.h"
#include "real_liar.h"
#include "report.h"

namespace sotto::sitelab {
namespace {

struct Request {
  console::OutputOptions output;
  std::string plan;
  std::string program = SOTTO_PROGRAM;
  std::uint64_t seed = 0;
  std::string keep;
  std::optional<Rank> lie;  ///< this process is such a site, at `port`, with the folder `keep`
  int port = 0;
};

/// Tells now and then how a run stands.
class ProgressTeller {
 public:
  explicit ProgressTeller(double duration_s) : duration_s_(duration_s) {}

  void tell(const RealProgress& now) {
    if (now.run_s >= due_) {
      due_ = now.run_s + kEvery;
      fmt::print(stderr,
                 "{:.0f} of {:.0f} s: {} faults, {} sites of them run, at rounds {} to {}\n",
                 now.run_s, duration_s_, now.faults, now.running, now.least, now.most);
    }
  }

 private:
  static constexpr double kEvery = 10;  // seconds

  double duration_s_;
  double due_ = kEvery;
};

/// A folder that is to be kept, made.
std::string make_folder(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::create_directories(path, code)) {
    refuse("--keep", path, "it must name a folder that can be made and is not there yet");
  }
  return std::filesystem::absolute(path).string();
}

/// Lies in place of a site, until it is told to end.
int lie(const Request& request, const FaultPlan& plan) {
  console::catch_stop_signals();
  const Status status = run_liar(plan, {.site = *request.lie,
                                        .seed = request.seed,
                                        .folder = request.keep,
                                        .port = request.port,
                                        .stop = console::stop_request()});
  if (!status.ok()) {
    console::say(status.message());
  }
  return status.ok() ? console::kDone : console::kFailed;
}

int run(const Request& request, const CLI::App& app) {
  const FaultPlan plan = study::read_fault_plan(request.plan);
  if (request.lie) {
    return lie(request, plan);
  }
  check_real(plan);  // before a folder is made
  const console::Output output(request.output);
  std::optional<PrivateDirectory> temporary;
  if (request.keep.empty()) {
    temporary.emplace();
  }
  // The first signal ends the run and its sites in good order.
  console::catch_stop_signals();
  ProgressTeller progress(to_seconds(plan.duration));
  const RealReport report =
      run_real_sites(plan, {.program = request.program,
                            .liar = {"/proc/self/exe", request.plan},
                            .seed = request.seed,
                            .folder = temporary ? temporary->path() : make_folder(request.keep),
                            .progress =
                                [&](const RealProgress& now) {
                                  if (!request.output.quiet) {
                                    progress.tell(now);
                                  }
                                },
                            .stop = console::stop_request()});
  if (console::stop_requested()) {
    return console::kFailed;
  }
  if (output.talks()) {
    show(plan, report);
  }
  output.json(to_json(plan, report));
  if (!report.violation) {
    return console::kDone;
  }
  const SimulatedSiteViolation& violation = *report.violation;
  return bench::complain(
      app,
      fmt::format("seed {}, at {:.3f} s: {}: {}{}{}", report.seed, to_seconds(violation.time),
                  violation.during,
                  violation.site >= 0 ? fmt::format("site {} ", violation.site) : "",
                  violation.what,
                  request.keep.empty() ? "; --keep FOLDER keeps the sites' files and logs" : ""),
      console::kFailed);
}

}  // namespace
}  // namespace sotto::sitelab

int main(int argc, char** argv) {
  using namespace sotto::sitelab;
  namespace console = sotto::console;
  CLI::App app("Plays a plan of faults on real sites, and checks that nothing is lost", "sitelab");
  Request request;
  app.add_option("PLAN", request.plan, "The plan, as of `sotto faults`")
      ->required()
      ->type_name("FILE.toml");
  app.add_option("--seed", request.seed, "Of the faults that are drawn")->type_name("N");
  app.add_option("--json", request.output.json,
                 "Write the report there as JSON; - is standard output")
      ->type_name("FILE");
  app.add_option("--keep", request.keep, "Keep the sites' files and logs there")
      ->type_name("FOLDER");
  app.add_option("--program", request.program, "The sotto that runs the sites")
      ->type_name("PATH")
      ->check(CLI::ExistingFile);
  app.add_option("--lie", request.lie, "Be this site of the plan, which lies")->group("");
  app.add_option("--port", request.port, "Where it listens")->group("");
  app.add_flag("--quiet", request.output.quiet, "Say nothing but what went wrong");
  return sotto::bench::run_main(app, argc, argv, [&] { return run(request, app); });
}
