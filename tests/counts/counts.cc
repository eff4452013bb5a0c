// Instructions an element of the codecs and of whole rounds, and instructions of a run's observers,
// against a stored count: a change that
// makes one of them dearer by more than kTolerance is a regression, and one that makes it cheaper
// by as much is to be stored, so that it is not lost unseen. Callgrind counts; no clock is read.
//   counts --stored FILE [--update]
//   counts --work        what is run under callgrind
// Counts hold for one compiler, build type and instruction set. Elsewhere it says SKIPPED.
#include <stdlib.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/support/running_job.h"
#include "counted_work.h"

namespace {

using namespace sotto;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kTolerance = 0.05;
/// What observers may cost a step.
constexpr double kMostWatching = 0.01;
/// Fails callgrind when it hangs.
constexpr std::chrono::minutes kPatience{5};

/// What the counts depend on, besides the source.
Json build() {
  return {{"compiler", SOTTO_COMPILER},
          {"build_type", SOTTO_BUILD_TYPE},
          {"instruction_set", counts::kInstructionSet}};
}

/// A directory that goes with the object.
struct Scratch {
  Scratch() : path((fs::temp_directory_path() / "sotto-counts-XXXXXX").string()) {
    if (::mkdtemp(path.data()) == nullptr) {
      throw std::runtime_error("no directory " + path);
    }
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path;
};

/// The total of one of callgrind's dumps.
double total_of(const fs::path& dump) {
  std::ifstream in(dump);
  constexpr std::string_view kTotals = "totals: ";
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kTotals)) {
      return std::stod(line.substr(kTotals.size()));
    }
  }
  throw std::runtime_error(dump.string() +
                           " holds no total: callgrind did not find where to count");
}

/// Instructions an element, by item; nothing, after saying why, where they cannot be counted.
std::optional<Json> count(const std::string& self) {
  const std::string valgrind = SOTTO_VALGRIND;
  if (!fs::exists(valgrind)) {
    fmt::print("SKIPPED: valgrind was not found when this was built (package valgrind)\n");
    return std::nullopt;
  }
  const Scratch scratch;
  const std::string dumps = scratch.path + "/dump";
  bench::RunningJob job({valgrind, "--tool=callgrind", "--quiet", "--error-exitcode=1",
                         fmt::format("--toggle-collect={}", counts::kCountedFunction),
                         fmt::format("--dump-after={}", counts::kCountedFunction),
                         "--callgrind-out-file=" + dumps, self, "--work"});
  const auto deadline = Deadline::after(kPatience);
  (void)job.wait_for_lines(1, deadline);
  if (job.output().starts_with("SKIPPED")) {
    fmt::print("{}", job.output());
    return std::nullopt;
  }
  (void)job.wait_for_lines(counts::counted_lines(), deadline);
  Json result = Json::object();
  std::istringstream lines(job.output());
  std::size_t elements = 0;
  std::string name;
  for (int part = 1; lines >> elements >> std::ws && std::getline(lines, name); ++part) {
    result[name] = total_of(fmt::format("{}.{}", dumps, part)) / static_cast<double>(elements);
  }
  return result;
}

/// Prints the comparison; the number of items that are off.
int compare(const Json& counted, const Json& stored) {
  int off = 0;
  fmt::print("{:<24} {:>10} {:>10} {:>8}\n", "instructions an element", "stored", "now", "ratio");
  for (const auto& [name, now] : counted.items()) {
    const double before = stored.value(name, std::nan(""));
    const double ratio = now.get<double>() / before;
    const bool fine = std::abs(ratio - 1) <= kTolerance;
    off += fine ? 0 : 1;
    fmt::print("{:<24} {:>10.3f} {:>10.3f} {:>8.3f}{}\n", name, before, now.get<double>(), ratio,
               fine ? "" : "  <- off");
  }
  return off;
}

/// What watching a run costs, as a share of a node's step.
double watching(const Json& counted) {
  constexpr double kElements = 65'539;
  constexpr double kNodes = 4;
  constexpr double kSpans = 6;        // round, gradient, encode, decode, and two waits
  constexpr double kEvaluation = 20;  // rounds from one to the next
  const double round = counted.at("round dcd quant:8").get<double>() * kElements;
  const double metered = counted.at("round dcd quant:8 metered").get<double>() * kElements;
  const double measured = counted.at("round dcd quant:8 measured").get<double>() * kElements;
  const double spans = kSpans * counted.at("a phase, traced").get<double>() +
                       counted.at("an exchange, traced").get<double>();
  const double told = counted.at("an evaluation, told").get<double>() / kNodes / kEvaluation;
  constexpr double kEvery = 64;  // kMeasureEvery
  // The least that a gradient of 32 examples takes: to multiply and add, forth and back, 8 at a
  // time.
  constexpr double kGradient = 4 * 32 * kElements / 8;
  return (metered - round + (measured - metered) / kEvery + spans + told) / (round + kGradient);
}

int run(const std::string& self, const std::string& path, bool update) {
  std::ifstream in(path);
  const Json stored = in ? Json::parse(in) : Json{{"build", nullptr}};
  if (!update && stored.at("build") != build()) {
    fmt::print("SKIPPED: {} holds counts of {}, and this is {}\n", path, stored.at("build").dump(),
               build().dump());
    return 0;
  }
  const auto counted = count(self);
  if (!counted) {
    return 0;
  }
  if (update) {
    std::ofstream(path) << Json{{"build", build()}, {"per_element", *counted}}.dump(2) << '\n';
    return 0;
  }
  int off = compare(*counted, stored.at("per_element"));
  const double share = watching(*counted);
  fmt::print("watching a run: {:.2f} % of a step of a node, {:.0f} % allowed\n", 100 * share,
             100 * kMostWatching);
  off += share <= kMostWatching ? 0 : 1;
  if (off > 0) {
    fmt::print("{} off by more than {:.0f} %. Where that is meant: scripts/counts --update\n", off,
               100 * kTolerance);
  }
  return off == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  bool work = false;
  bool update = false;
  std::string stored;
  CLI::App app("Instructions an element, against a stored count");
  app.add_flag("--work", work, "Do what is counted");
  app.add_flag("--update", update, "Store the counts of now");
  app.add_option("--stored", stored, "The file of counts");
  CLI11_PARSE(app, argc, argv);
  try {
    if (work) {
      counts::do_counted_work();
      return 0;
    }
    return run(fs::canonical("/proc/self/exe").string(), stored, update);
  } catch (const std::exception& error) {
    fmt::print(stderr, "counts: {}\n", error.what());
    return 1;
  }
}
