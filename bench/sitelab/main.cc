// `sitelab`: a plan of faults on real sites, processes of `sotto node` on this machine.
//
//   build/bench/sitelab examples/faults/real-minute.toml [--seed N] [--json FILE] [--keep FOLDER]
//
// Ends with 0 when everything held, 1 when something did not, 2 for a plan or an option that cannot
// be, and 130 when it was interrupted. What is looked at: docs/faults.md.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/error.h>
#include <sotto/study/scenario/fault_file.h>
#include <sotto/trainers/files/result_file.h>
#include <sotto/trainers/launch/private_directory.h>

#include "report.h"

namespace sotto::sitelab {
namespace {

enum Exit : int { kHeld = 0, kFailed = 1, kWrongRequest = 2, kInterrupted = 130 };

/// A signal handler reaches nothing but globals.
std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// The first signal ends the run and its sites in good order, a second one ends the process.
void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaction(signal, &action, nullptr);
  }
}

int complain(const std::string& what, int status) {
  fmt::print(stderr, "sitelab: {}\n", what);
  return status;
}

struct Request {
  std::string plan;
  std::string program = SOTTO_PROGRAM;
  std::uint64_t seed = 0;
  std::string json;
  std::string keep;
  bool quiet = false;
};

/// Tells now and then how a run stands.
class ContenderResult {
 public:
  explicit ContenderResult(double duration_s) : duration_s_(duration_s) {}

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

void write_json(const std::string& path, const Json& json) {
  const std::string text = json.dump(2) + "\n";
  if (path == "-") {
    fmt::print("{}", text);
  } else if (!path.empty()) {
    write_result_file("--json", path, text);
  }
}

int run(const Request& request) {
  const FaultPlan plan = study::read_fault_plan(request.plan);
  check_real(plan);  // before a folder is made
  if (request.json != "-") {
    check_writable("--json", request.json);
  }
  std::optional<PrivateDirectory> temporary;
  if (request.keep.empty()) {
    temporary.emplace();
  }
  catch_signals();
  ContenderResult result(to_seconds(plan.duration));
  const RealReport report =
      run_real_sites(plan, {.program = request.program,
                            .seed = request.seed,
                            .folder = temporary ? temporary->path() : make_folder(request.keep),
                            .progress =
                                [&](const RealProgress& now) {
                                  if (!request.quiet) {
                                    result.tell(now);
                                  }
                                },
                            .stop = [] { return stop.load(); }});
  if (stop) {
    return complain("interrupted", kInterrupted);
  }
  if (!request.quiet && request.json != "-") {
    show(plan, report);
  }
  write_json(request.json, to_json(plan, report));
  if (!report.violation) {
    return kHeld;
  }
  const SimulatedSiteViolation& violation = *report.violation;
  return complain(
      fmt::format("seed {}, at {:.3f} s: {}: {}{}{}", report.seed, to_seconds(violation.time),
                  violation.during,
                  violation.site >= 0 ? fmt::format("site {} ", violation.site) : "",
                  violation.what,
                  request.keep.empty() ? "; --keep FOLDER keeps the sites' files and logs" : ""),
      kFailed);
}

}  // namespace
}  // namespace sotto::sitelab

int main(int argc, char** argv) {
  using namespace sotto::sitelab;
  CLI::App app("Plays a plan of faults on real sites, and checks that nothing is lost", "sitelab");
  Request request;
  app.add_option("PLAN", request.plan, "The plan, as of `sotto faults`")
      ->required()
      ->type_name("FILE.toml");
  app.add_option("--seed", request.seed, "Of the faults that are drawn")->type_name("N");
  app.add_option("--json", request.json, "Write the report there as JSON; - is standard output")
      ->type_name("FILE");
  app.add_option("--keep", request.keep, "Keep the sites' files and logs there")
      ->type_name("FOLDER");
  app.add_option("--program", request.program, "The sotto that runs the sites")
      ->type_name("PATH")
      ->check(CLI::ExistingFile);
  app.add_flag("--quiet", request.quiet, "Say nothing but what went wrong");
  try {
    app.parse(argc, argv);
    return run(request);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error)  // --help
                                      : complain(error.what(), kWrongRequest);
  } catch (const sotto::Error& error) {
    return complain(error.what(), kWrongRequest);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}
