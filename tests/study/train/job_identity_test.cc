// Every setting of training changes what makes a job's results one's own (Optimizer::agreement),
// or is one of a few whose other values are shown to give the same models, or to be noticed.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/study/train/scaling_file.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/trainers/run.h>
#include <sotto/trainers/settings/agreed_settings.h>

#include "support/scratch.h"
#include "trainers/nodes.h"
#include "trainers/settings/setting_changes.h"

namespace sotto::test::job_identity_test {

using namespace sotto::study;

namespace {

constexpr int kNodes = 4;

using Changes = std::map<std::string_view, SettingChange>;

/// The job that settings are changed of: three rounds.
const GivenSettings kJob = {{"nodes", fmt::to_string(kNodes)},
                            {"task", "digits,train=300,test=60"},
                            {"model", "softmax"},
                            {"batch", "8"},
                            {"epochs", "0.3"}};

const GivenSettings kUneven = {{"algorithm", "allreduce"}, {"partition", "sizes:0.3"}};
const GivenSettings kAttacked = {
    {"algorithm", "robust"}, {"byzantine", "1"}, {"attack", "sign-flip"}};

/// Settings of the whole run that change its results, and those of the optimizer that need data.
const Changes kRunChanges = {{"task", {"digits,train=240,test=60"}},
                             {"model", {"mlp:8"}},
                             {"batch", {"16"}},
                             {"batch-share", {"4,2,1,1", {{"algorithm", "allreduce"}}}},
                             {"partition", {"label"}},
                             {"seed", {"7"}},
                             {"weight", {"examples", kUneven}},
                             {"join", {"zeros", kUneven}},
                             {"byzantine", {"2", kAttacked}},
                             {"attack", {"ipm", kAttacked}}};

/// Settings that change no model, with values that may be run here.
const Changes kSameResults = {
    {"timeout", {"61"}},         {"bind", {"127.0.0.2"}},  {"insecure", {"true"}},
    {"overlap", {"off"}},        {"codec-threads", {"2"}}, {"allow-contract-violation", {"true"}},
    {"gradient-time", {"1 ms"}}, {"local", {"true"}},      {"eval-every", {"2"}}};

/// Settings of files, which the tests write, and of how long a run is.
const std::set<std::string_view> kOfFiles = {
    "experts-at", "expert-compressor", "expert-capacity", "scaling",          "own-sums",
    "init",       "dump-parameters",   "checkpoint",      "checkpoint-every", "resume"};
const std::set<std::string_view> kLength = {"epochs", "rounds"};

/// How bytes travel between processes, of which these tests have one; and noise that nobody is to
/// know, which without a seed is other at each run.
const std::set<std::string_view> kBetweenProcesses = {"transport", "rendezvous", "streams", "key",
                                                      "peers"};
const std::set<std::string_view> kNoise = {"privacy-seed"};

GivenSettings both(GivenSettings given, const GivenSettings& more) {
  given.insert(given.end(), more.begin(), more.end());
  return given;
}

/// What is made of the job with these settings.
TrainPlan plan_of(const GivenSettings& given) {
  TrainOptions options;
  for (const auto& [name, value] : both(kJob, given)) {
    REQUIRE_MESSAGE(set(train_settings(options), name, value), name);
  }
  return make_train_plan(options);
}

std::string identity_of(const TrainPlan& plan) {
  OptimizerOptions options = plan.run.optimizer;
  options.transport = "inproc";
  options.streams = 1;
  options.store = make_memory_store();
  const auto task = plan.tasks->make(0);
  std::vector<float> x(task->dimension());
  return Optimizer(options, x, task->layout()).agreement();
}

/// What the identities of two jobs differ in.
std::string difference(const GivenSettings& a, const GivenSettings& b) {
  return first_difference(identity_of(plan_of(a)), identity_of(plan_of(b)));
}

void check_changed(std::string_view name, const SettingChange& change) {
  CAPTURE(std::string(name));
  const GivenSettings changed = both(change.with, {{std::string(name), change.value}});
  CHECK_FALSE(difference(changed, change.with).empty());
}

/// SHA-256 of all nodes' models.
std::vector<std::string> models_of(const TrainPlan& plan) {
  const auto result = run_threads(
      plan.run, [&](Rank rank) { return plan.task_of(rank); }, RunHooks());
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  REQUIRE(result->parameters_sha256.size() == kNodes);
  return result->parameters_sha256;
}

/// The fault of a job whose node 1 has other settings than the others.
Status mixed(const GivenSettings& most, const GivenSettings& one) {
  const auto store = make_memory_store();
  std::vector<TrainPlan> plans;
  for (Rank rank = 0; rank < kNodes; ++rank) {
    plans.push_back(plan_of(rank == 1 ? one : most));
  }
  return root_cause(play(kNodes, [&](Rank rank) {
    const TrainPlan& plan = plans[static_cast<std::size_t>(rank)];
    RunOptions run = plan.run;
    run.optimizer.transport = "inproc";
    run.optimizer.store = store;
    run.optimizer.rank = rank;
    const auto task = plan.task_of(rank);
    return run_node(run, *task, RunHooks()).status();
  }));
}

}  // namespace

TEST_CASE("each setting of training has its place among those that change results or do not") {
  TrainOptions all;
  for (const SettingGroup& group : train_settings(all)) {
    for (const Setting& setting : group.settings) {
      CAPTURE(std::string(setting.name));
      const std::string_view name = setting.name;
      // The run's own take the place of the optimizer's.
      const bool of_run = kRunChanges.contains(name);
      CHECK(int{of_run || kSettingChanges.contains(name)} + int{kSameResults.contains(name)} +
                int{kOfFiles.contains(name)} + int{kLength.contains(name)} +
                int{kBetweenProcesses.contains(name)} + int{kNoise.contains(name)} ==
            1);
    }
  }
}

TEST_CASE("settings that change results change a job's identity") {
  for (const auto& [name, change] : kRunChanges) {
    check_changed(name, change);
  }
  for (const auto& [name, change] : kSettingChanges) {
    if (!kRunChanges.contains(name)) {
      check_changed(name, change);
    }
  }
}

TEST_CASE("where experts lie and how rows go there changes a job's identity") {
  const Scratch scratch;
  std::string text;
  for (int line = 0; line < 150; ++line) {
    text += line % 2 == 0 ? "to be or not to be\n" : "that is it\n";
  }
  const std::string verse = scratch.write("verse.txt", text).string();
  const GivenSettings whole = {{"task", fmt::format("text:{},context=6", verse)},
                               {"model", "transformer:2,8,2,experts=4,balance=0.01"},
                               {"algorithm", "allreduce"},
                               {"rounds", "3"}};
  const GivenSettings placed = both(whole, {{"experts-at", "nodes"}});
  check_changed("experts-at", {"nodes", whole});
  check_changed("expert-compressor", {"none", placed});
  check_changed("expert-capacity", {"1.5", placed});
}

TEST_CASE("a scaling and whose sums count as told change a job's identity") {
  const Scratch scratch;
  std::string table = "age,ill\n";
  for (int row = 0; row < 400; ++row) {
    table += fmt::format("{},{}\n", 20 + row * 7 % 60, row % 3 == 0 ? "yes" : "no");
  }
  SharedScaling scaling;
  scaling.columns = {{"age", 54, 12}};
  std::vector<std::string> sums;
  for (const double noise : {4.5, 9.0}) {
    const TableSums site{.source = {},
                         .digest = {},
                         .rows = 400,
                         .privacy = {.noise_multiplier = noise, .epsilon = 1, .delta = 1e-6},
                         .columns = {{"age", false, 0, 120, 10, 300}}};
    sums.push_back(scratch.write(fmt::format("{}.toml", noise), table_sums_text(site)).string());
    scaling.sites.push_back({read_table_sums("own_sums", sums.back()).digest, noise});
  }
  const auto file = [&](double mean) {
    scaling.columns[0].mean = mean;
    return scratch.write(fmt::format("scaling-{}.toml", mean), scaling_text(scaling)).string();
  };
  const std::string table_file = scratch.write("table.csv", table).string();
  const GivenSettings job = {{"task", "csv:" + table_file}, {"rounds", "3"}};
  const GivenSettings scaled = both(job, {{"scaling", file(54)}});
  CHECK_FALSE(difference(scaled, job).empty());
  CHECK_FALSE(difference(both(job, {{"scaling", file(50)}}), scaled).empty());
  const GivenSettings secret = both(scaled, kPrivateSettings);
  CHECK(difference(both(secret, {{"own-sums", sums[0]}}), secret).empty());
  CHECK_FALSE(difference(both(secret, {{"own-sums", sums[1]}}), secret).empty());
}

TEST_CASE("settings that are said to change no result change no bit of a model") {
  const TrainPlan plain = plan_of({});
  const auto models = models_of(plain);
  const Scratch scratch;
  const auto folder = [&](const char* name) { return (scratch.path() / name).string(); };
  std::vector<GivenSettings> others = {
      {{"dump-parameters", folder("models.csv")}},
      {{"checkpoint", folder("some")}},
      {{"checkpoint", folder("each")}, {"checkpoint-every", "1"}},
      {{"checkpoint", folder("each")}, {"checkpoint-every", "1"}, {"resume", "true"}}};
  for (const auto& [name, change] : kSameResults) {
    others.push_back(both(change.with, {{std::string(name), change.value}}));
  }
  for (const GivenSettings& other : others) {
    CAPTURE(other.back().first);
    const TrainPlan plan = plan_of(other);
    CHECK(identity_of(plan) == identity_of(plain));
    CHECK(models_of(plan) == models);
  }
  // Settings that change nothing leave other models apart.
  CHECK(models_of(plan_of({{"lr", "0.03"}})) != models);
}

TEST_CASE("transports and connections are no part of a job's identity") {
  CHECK(difference({{"transport", "inproc"}}, {}).empty());
  if (available("zmq")) {
    CHECK(difference({{"transport", "zmq"}}, {}).empty());
    CHECK(difference({{"transport", "zmq"}, {"streams", "2"}}, {}).empty());
  }
}

TEST_CASE("a run that goes on for longer has the models of one as long from its start") {
  const Scratch scratch;
  const std::string folder = (scratch.path() / "saved").string();
  const GivenSettings longer = {{"epochs", "0.5"}};
  const auto whole = models_of(plan_of(longer));
  const GivenSettings saved = {{"checkpoint", folder}};
  CHECK(models_of(plan_of(saved)) != whole);
  CHECK(models_of(plan_of(both(both(saved, longer), {{"resume", "true"}}))) == whole);
}

TEST_CASE("a node with another length or start or evaluations does not train along") {
  const Scratch scratch;
  const std::string start = (scratch.path() / "start.csv").string();
  (void)models_of(plan_of({{"dump-parameters", start}}));
  const Status other_start = mixed({}, {{"init", start}});
  CHECK(other_start.fault() == Fault::unexpected);
  CHECK(contains(other_start.message(), "other initial parameters than node 0"));
  // These show once the others wait for a round or a meeting that does not come.
  const GivenSettings soon = {{"timeout", "2"}};
  for (const char* const name : {"epochs", "rounds", "eval-every"}) {
    CAPTURE(name);
    CHECK_FALSE(
        mixed(soon, both(soon, {{name, name == std::string("epochs") ? "0.5" : "2"}})).ok());
  }
  const Status same = mixed({}, {});
  CHECK_MESSAGE(same.ok(), same.message());
}

}  // namespace sotto::test::job_identity_test
