// The scenarios of examples/scenarios: all of them run, and their answers hold.
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"
#include "support/text_of_file.h"

namespace sotto::test::scenarios_test {

using nlohmann::json;

namespace {

/// Scenarios name files as seen from the root of the sources.
class AtRoot {
 public:
  AtRoot() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(std::filesystem::path(SOTTO_SCENARIOS) / ".." / "..");
  }
  ~AtRoot() { std::filesystem::current_path(before_); }
  AtRoot(const AtRoot&) = delete;
  AtRoot& operator=(const AtRoot&) = delete;

 private:
  std::filesystem::path before_;
};

std::string scenario_file(const std::string& name) {
  return (std::filesystem::path(SOTTO_SCENARIOS) / (name + ".toml")).string();
}

struct Claim {
  std::string scenario;
  std::size_t sooner;  ///< this run reaches the target
  std::size_t later;   ///< before that one,
  double times;        ///< so many times at least, and
  double most;         ///< so many times at most
};
constexpr double kAny = 1e9;

const std::vector<Claim> kClaims = {
    {"ocean", 1, 0, 2.5, kAny},       // a ring before all-reduce
    {"ocean", 2, 1, 1.1, 2},          // 8 bits before full precision
    {"churn", 1, 0, 1.6, kAny},       // 8 bits before full precision, on the slow line
    {"slow-rack", 2, 1, 1.1, kAny},   // AD-PSGD before D-PSGD
    {"far", 1, 0, 8, kAny},           // a ring before all-reduce
    {"far", 3, 1, 0.9, 1.15},         // 8 bits and full precision alike
    {"far", 4, 1, 2, kAny},           // talking less often before talking always
    {"datacenter", 2, 1, 0.95, 1.1},  // 8 bits and full precision alike
    {"weak-hub", 1, 0, 5, kAny},      // a bit before full precision, on the star
    {"weak-hub", 3, 1, 1, 1.4},       // a ring a little before the star, with a bit
    {"liars", 3, 1, 1.2, 3},          // clipped:auto before the median
    {"liars", 5, 3, 1.8, 5},          // a ring before all lines, against liars too
};

/// A figure that an example's answer, or its check by hand, names.
struct Figure {
  std::string scenario;
  std::size_t run;
  std::string key;
  double seconds;
};

/// The figures of the examples that answer planners' questions, within what their texts round off.
const std::vector<Figure> kFigures = {
    {"six-hospitals", 0, "time_to_target_s", 41},  {"six-hospitals", 1, "time_to_target_s", 49},
    {"six-hospitals", 1, "virtual_s", 97.7},       {"six-hospitals", 2, "time_to_target_s", 12},
    {"six-hospitals", 2, "virtual_s", 24.6},       {"six-hospitals", 3, "time_to_target_s", 6.0},
    {"thin-ocean", 0, "time_to_target_s", 9.8},    {"thin-ocean", 1, "time_to_target_s", 4.7},
    {"thin-ocean", 1, "virtual_s", 7.3},           {"thin-ocean", 2, "time_to_target_s", 65},
    {"thin-ocean", 2, "virtual_s", 108.3},         {"thin-ocean", 3, "time_to_target_s", 18},
    {"half-line", 0, "virtual_s", 40.9},           {"half-line", 1, "virtual_s", 7.7},
    {"phones-churn", 0, "time_to_target_s", 320},  {"phones-churn", 0, "virtual_s", 428},
    {"phones-churn", 1, "time_to_target_s", 75},   {"phones-churn", 2, "time_to_target_s", 31.6},
    {"phones-churn", 3, "time_to_target_s", 27.7}, {"phones-churn", 3, "virtual_s", 128},
    {"time-of-day", 0, "virtual_s", 2'638'800},    {"time-of-day", 1, "virtual_s", 51'165},
};

double seconds_to_target(const json& run) {
  REQUIRE_MESSAGE(run.at("time_to_target_s").is_number(), run.at("name"));
  return run.at("time_to_target_s").get<double>();
}

}  // namespace

TEST_CASE("every scenario of the examples runs, and asks and answers its question") {
  const AtRoot root;
  const Scratch scratch;
  for (const auto& entry : std::filesystem::directory_iterator(SOTTO_SCENARIOS)) {
    if (entry.path().extension() != ".toml") {
      std::filesystem::copy(entry.path(), scratch.path());  // what scenarios name beside them
    }
  }
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SOTTO_SCENARIOS)) {
    if (entry.path().extension() != ".toml") {
      continue;
    }
    CAPTURE(entry.path());
    ++found;
    const std::string text = text_of_file(entry.path());
    CHECK(text.starts_with("# "));
    CHECK(contains(text, "?"));
    CHECK(contains(text, "\n# Answer: "));
    const std::string name = entry.path().stem().string();
    if (std::ranges::find(kClaims, name, &Claim::scenario) != kClaims.end() ||
        std::ranges::find(kFigures, name, &Figure::scenario) != kFigures.end()) {
      continue;  // the tests below run it whole
    }
    const std::string few = std::regex_replace(text, std::regex("\n(rounds|eval-every) = [0-9]+"),
                                               std::string("\n$1 = 2"));
    const auto result = simulated(scratch, few);
    for (const auto& run : result.at("runs")) {
      CHECK_MESSAGE(run.at("faults").empty(), run.at("name"));
      CHECK(run.at("rounds") == 2);
    }
  }
  CHECK(found >= 12);
}

TEST_CASE("the answers of the examples hold") {
  const AtRoot root;
  json result;
  std::string simulated_scenario;
  for (const Claim& claim : kClaims) {
    CAPTURE(claim.scenario);
    if (claim.scenario != simulated_scenario) {
      result = run({"simulate", scenario_file(claim.scenario), "--json", "-"}).json();
      simulated_scenario = claim.scenario;
    }
    const auto& runs = result.at("runs");
    CAPTURE(runs[claim.sooner].at("name"));
    CAPTURE(runs[claim.later].at("name"));
    const double ratio =
        seconds_to_target(runs[claim.later]) / seconds_to_target(runs[claim.sooner]);
    CHECK(ratio >= claim.times);
    CHECK(ratio <= claim.most);
  }
}

TEST_CASE("the figures of the planners' questions hold") {
  const AtRoot root;
  json result;
  std::string simulated_scenario;
  for (const Figure& figure : kFigures) {
    CAPTURE(figure.scenario);
    if (figure.scenario != simulated_scenario) {
      result = run({"simulate", scenario_file(figure.scenario), "--json", "-"}).json();
      simulated_scenario = figure.scenario;
    }
    const auto& played = result.at("runs").at(figure.run);
    CAPTURE(played.at("name"));
    CHECK_MESSAGE(played.at("faults").empty(), played.at("faults"));
    CHECK(played.at(figure.key).get<double>() == doctest::Approx(figure.seconds).epsilon(0.02));
  }
}

TEST_CASE("the example's buckets save as much as its answer says") {
  const AtRoot root;
  const auto result = run({"simulate", scenario_file("buckets"), "--json", "-"}).json();
  const auto& runs = result.at("runs");
  const auto seconds = [&](std::size_t index) {
    return runs.at(index).at("virtual_s").get<double>();
  };
  CHECK(seconds(0) > 1.2 * seconds(2));  // uncut, and in four
  CHECK(seconds(2) < 1.1 * seconds(4));  // in 256
  CHECK(seconds(4) < seconds(3));
}

}  // namespace sotto::test::scenarios_test
