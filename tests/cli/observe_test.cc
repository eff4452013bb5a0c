// Files and pages that tell of a training run, read back as other programs read them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/console/flag_spelling.h>
#include <sotto/observe/event_record.h>
#include <sotto/observe/figures.h>
#include <sotto/observe/metrics_text.h>
#include <sotto/observe/monitor.h>
#include <sotto/observe/telemetry_settings.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "observe/observed.h"
#include "support/blocks.h"
#include "support/free_port.h"
#include "support/skip.h"
#include "train/train_observers.h"

namespace sotto::test::observe_test {

using nlohmann::json;

namespace {

/// promtool's opinion of a page; empty when it has none to give.
std::string lint(const std::string& page, const Scratch& scratch) {
  const auto path = (scratch.path() / "page").string();
  std::ofstream(path) << page;
  const Ended ended = shell("promtool check metrics < " + path + " 2>&1");
  return ended.status == 0 ? ended.out : fmt::format("status {}: {}", ended.status, ended.out);
}

bool has_promtool() { return shell("command -v promtool").status == 0; }

}  // namespace

TEST_CASE("TensorBoard reads what a run has written") {
  if (!sotto::has_event_records()) {
    SOTTO_SKIP("this build has no ISA-L");
  }
  const Scratch scratch;
  const auto folder = scratch.path() / "board";
  const auto result = run(small_train({"--rounds", "6", "--eval-every", "3", "--json", "-",
                                       "--tensorboard", folder.string()}))
                          .json();
  const std::string file = event_file(folder);
  CHECK(records_of(text_of_file(file)).size() == 3);

  const char* chosen = std::getenv("SOTTO_PYTHON");
  const std::string python = chosen == nullptr ? "python3" : chosen;
  if (shell(python + " -c 'import tensorboard' 2>&1").status != 0) {
    SOTTO_SKIP("no Python with the package tensorboard (name one in SOTTO_PYTHON)");
  }
  const std::string script = (scratch.path() / "read.py").string();
  std::ofstream(script) << R"(
import json, sys
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
found = []
for raw in RawEventFileLoader(sys.argv[1]).Load():
    event = Event.FromString(raw)
    if event.HasField("summary"):
        found.append({"step": event.step,
                      "values": {v.tag: v.simple_value for v in event.summary.value}})
    else:
        found.append({"version": event.file_version})
print(json.dumps(found))
)";
  const auto read = shell(fmt::format("{} {} {}", python, script, file));
  CAPTURE(read.err);
  const json found = read.json();
  REQUIRE(found.size() == 3);
  CHECK(found[0].at("version") == "brain.Event:2");
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(found[i + 1].at("step") == result.at("history")[i].at("round"));
    CHECK(found[i + 1].at("values").at("quality/test_loss").get<double>() ==
          doctest::Approx(result.at("history")[i].at("loss").get<double>()));
  }
}

TEST_CASE("lines of JSON tell how a run began, stood and ended") {
  const Scratch scratch;
  for (const std::string transport : {"inproc", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    const auto path = scratch.path() / transport;
    const auto result = run(small_train({"--rounds", "6", "--eval-every", "3", "--algorithm",
                                         "pushsum", "--compressor", "quant:4", "--transport",
                                         transport, "--log-json", path.string(), "--json", "-"}))
                            .json();
    const auto lines = lines_of(path);
    REQUIRE(lines.size() == 4);
    CHECK(lines[0].at("event") == "began");
    CHECK(lines[0].at("config") == result.at("config"));
    CHECK(lines[3].at("event") == "ended");
    CHECK(lines[3].at("ok") == true);
    const json& last = lines[2];
    CHECK(last.at("event") == "evaluation");
    CHECK(last.at("round") == 6);
    CHECK(last.at("test_loss") == result.at("final").at("loss"));
    CHECK(last.at("consensus_distance") == result.at("final").at("consensus_distance"));
    CHECK(last.at("privacy_epsilon").is_null());
    CHECK(std::abs(last.at("mass_drift").get<double>()) < 1e-12);
    CHECK(last.at("compression_contract_use").get<double>() > 0);
    CHECK(last.at("compression_contract_use").get<double>() <= 1);
    REQUIRE(last.at("nodes").size() == 4);
    double sent = 0;
    for (const json& link : last.at("nodes")[1].at("links")) {
      sent += link.at("link_sent_bytes_total").get<double>();
    }
    CHECK(sent == result.at("bytes_sent_per_node")[1].get<double>());
  }
}

TEST_CASE("a run that fails or is resumed tells so, and keeps the lines before") {
  const Scratch scratch;
  const auto path = (scratch.path() / "log").string();
  const auto saved = (scratch.path() / "saved").string();
  Arguments words = small_train({"--rounds", "4", "--checkpoint", saved, "--log-json", path});
  CHECK(run(words).status == 0);
  words[words.size() - 5] = "6";
  words.push_back("--resume");
  CHECK(run(words).status == 0);
  const auto lines = lines_of(path);
  CHECK(lines.size() > 4);
  CHECK(lines.back().at("ok") == true);
  CHECK(std::count_if(lines.begin(), lines.end(),
                      [](const json& line) { return line.at("event") == "began"; }) == 2);

  const auto wild = run(small_train({"--rounds", "50", "--lr", "3e38", "--log-json", path}));
  CHECK(wild.status == 1);
  CHECK(lines_of(path).back().at("ok") == false);
  for (const char* option : {"--log-json", "--mllog", "--trace", "--tensorboard"}) {
    const auto refused = run(small_train({option, "/proc/none/file"}));
    CHECK(refused.status == 2);
    CHECK(contains(refused.err, option));
  }
}

TEST_CASE("MLPerf's lines have its keys in their order") {
  const Scratch scratch;
  const auto path = scratch.path() / "mllog";
  run(small_train({"--rounds", "6", "--eval-every", "3", "--mllog", path.string()}));
  const auto lines = lines_of(path, ":::MLLOG ");
  std::vector<std::string> keys;
  std::int64_t before = 0;
  for (const json& line : lines) {
    keys.push_back(line.at("key"));
    CHECK(line.at("time_ms").get<std::int64_t>() >= before);
    before = line.at("time_ms");
    const std::string type = line.at("event_type");
    const bool stops = keys.back().ends_with("_stop");
    const bool starts = keys.back().ends_with("_start");
    CHECK(type == (starts ? "INTERVAL_START" : stops ? "INTERVAL_END" : "POINT_IN_TIME"));
    CHECK(line.at("metadata").contains("lineno"));
  }
  const std::vector<std::string> interval = {"block_start",   "block_stop", "eval_start",
                                             "eval_accuracy", "eval_loss",  "eval_stop"};
  std::vector<std::string> expected = {"init_start",
                                       "submission_benchmark",
                                       "submission_platform",
                                       "seed",
                                       "global_batch_size",
                                       "opt_name",
                                       "opt_base_learning_rate",
                                       "init_stop",
                                       "run_start"};
  expected.insert(expected.end(), interval.begin(), interval.end());
  expected.insert(expected.end(), interval.begin(), interval.end());
  expected.emplace_back("run_stop");
  CHECK(keys == expected);
  CHECK(lines[4].at("value") == 4 * 32);
  CHECK(lines.back().at("metadata").at("status") == "success");
  CHECK(lines[lines.size() - 4].at("metadata").at("step_num") == 6);
}

TEST_CASE("a trace has every phase of every node, nested, over threads and processes") {
  const Scratch scratch;
  for (const std::string transport : {"inproc", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    const auto path = scratch.path() / (transport + ".json");
    const auto ended =
        run(small_train({"--rounds", "6", "--eval-every", "3", "--transport", transport, "--trace",
                         path.string(), "--checkpoint", (scratch.path() / transport).string()}));
    REQUIRE(ended.status == 0);
    const json trace = json::parse(text_of_file(path));
    CHECK(trace.at("otherData").at("config").at("algorithm") == "dcd");
    const auto names = check_trace(trace);
    for (const char* name : {"round", "gradient", "encode", "decode", "wait", "wire", "evaluation",
                             "checkpoint", "process_name", "thread_name"}) {
      CAPTURE(name);
      CHECK((names.contains(name) || std::string(name) == "wait"));  // there may be none
    }
    std::map<int, int> gradients;
    std::map<int, std::string> processes;
    std::map<int, int> places;
    for (const json& event : trace.at("traceEvents")) {
      const int process = event.at("pid");
      gradients[process] += event.at("name") == "gradient" ? 1 : 0;
      if (event.at("name") == "process_name") {
        processes[process] = event.at("args").at("name");
      } else if (event.at("name") == "process_sort_index") {
        places[process] = event.at("args").at("sort_index");
      }
    }
    CHECK(gradients == std::map<int, int>{{1000, 6}, {1001, 6}, {1002, 6}, {1003, 6}});
    CHECK(places == std::map<int, int>{{1000, 0}, {1001, 1}, {1002, 2}, {1003, 3}});
    CHECK(processes == std::map<int, std::string>{
                           {1000, "node 0"}, {1001, "node 1"}, {1002, "node 2"}, {1003, "node 3"}});
  }
}

TEST_CASE("a run names in the end what it has written") {
  const Scratch scratch;
  const auto at = [&](const char* name) { return (scratch.path() / name).string(); };
  const auto ended = run(
      small_train({"--rounds", "3", "--trace", at("t.json"), "--log-json", at("l.jsonl"), "--mllog",
                   at("m.log"), "--dump-parameters", at("x.csv"), "--checkpoint", at("saved")}));
  CHECK(ended.status == 0);
  CHECK_MESSAGE(ended.out.ends_with(fmt::format(
                    "trace: {}\nlog: {}\nmllog: {}\nparameters: {}\ncheckpoint: {}\n", at("t.json"),
                    at("l.jsonl"), at("m.log"), at("x.csv"), at("saved"))),
                ended.out);

  const auto nowhere = run(small_train({"--rounds", "3", "--trace", "/dev/null"}));
  CHECK(nowhere.status == 0);
  CHECK(nowhere.err.empty());
}

TEST_CASE("a trace is whole JSON while the run goes on, and after it was killed") {
  const Scratch scratch;
  const auto path = scratch.path() / "trace.json";
  Process process(command(
      small_train({"--rounds", "1000000", "--eval-every", "500", "--trace", path.string()})));
  REQUIRE(process.wait_for(" 500 "));
  REQUIRE(process.wait_for(" 1000 "));
  // Held still: a write that is under way is over then.
  process.send(SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(process.pid(), &status, WUNTRACED) == process.pid());
  REQUIRE(WIFSTOPPED(status));
  check_trace(json::parse(text_of_file(path)));
  process.send(SIGKILL);
  CHECK(process.wait().status == 128 + SIGKILL);
  check_trace(json::parse(text_of_file(path)));
}

TEST_CASE("Prometheus takes what a run serves while it trains") {
  const Scratch scratch;
  const int port = free_port();
  Process process(command(small_train({"--rounds", "1000000", "--eval-every", "50", "--algorithm",
                                       "pushsum", "--metrics", std::to_string(port)})));
  REQUIRE(process.wait_for(" 50 "));
  REQUIRE(process.wait_for(" 100 "));
  const std::string page = sotto::ask_monitor({"127.0.0.1", port}, "/metrics");
  CHECK(sotto::ask_monitor({"127.0.0.1", port}, "/healthz") == "ok\n");
  process.send(SIGINT);
  CHECK(process.wait().status == 130);
  for (const auto& figure : sotto::run_figures()) {
    CHECK(contains(page, fmt::format("\nsotto_train_{} ", figure.info.name)));
  }
  for (const auto& figure : sotto::node_figures()) {
    CHECK(contains(page, fmt::format("\nsotto_train_{}{{node=\"3\"}} ", figure.info.name)));
  }
  CHECK(contains(page, "sotto_train_link_sent_bytes_total{from=\"0\",to=\"1\"}"));
  const auto refused = run(small_train({"--metrics", "0.0.0.0:9100"}));
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "--metrics"));
  if (!has_promtool()) {
    SOTTO_SKIP("no promtool (package prometheus)");
  }
  CHECK(lint(page, scratch) == "");
}

TEST_CASE("Prometheus takes what a site serves") {
  if (!has_promtool()) {
    SOTTO_SKIP("no promtool (package prometheus)");
  }
  const Scratch scratch;
  Sites sites({"a", "b"});
  sites.write_all("rounds = 0\neval-every = 20");
  sites.start_all();
  sites.await_round("a", 40);
  CHECK(lint(sites.ask("a", "/metrics"), scratch) == "");
}

namespace {

/// What a node of a run with one model serves that waits for another one.
std::string page_of_one_model() {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  const int monitor = free_port();
  Process node(command({"train", "--nodes", "2:4", "--seeds", seed, "--listen", seed, "--algorithm",
                        "allreduce", "--task", "digits,train=320,test=100", "--metrics",
                        std::to_string(monitor)}));
  std::string page;
  while (!contains(page, "sotto_run_waits{")) {  // the test's time limit ends what never is
    try {
      page = sotto::ask_monitor({"127.0.0.1", monitor}, "/metrics");
    } catch (const std::runtime_error&) {
      // it does not answer yet
    }
    std::this_thread::yield();
  }
  node.send(SIGTERM);
  CHECK(node.wait().status == 0);
  return page;
}

}  // namespace

namespace {

/// Each alarm of the tables of docs/operations.md has a rule.
void check_documented_alarms(const std::string& rules) {
  const std::string text = text_of_file(std::filesystem::path(SOTTO_DOCS) / "operations.md");
  const std::regex name("`([a-z_]+)`");
  const std::regex phase("`(?:phase=)?\"([a-z]+)\"`");
  const auto each = [](const std::string& cell, const std::regex& what, const auto& check) {
    for (std::sregex_iterator at(cell.begin(), cell.end(), what), end; at != end; ++at) {
      check((*at)[1].str());
    }
  };
  std::istringstream lines(text);
  std::size_t alarms = 0;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    inside = line.starts_with("| metric | alarm when |") || (inside && line.starts_with("|"));
    if (!inside || line.starts_with("| metric") || line.starts_with("| ---")) {
      continue;
    }
    const auto second = line.find(" | ", 1);
    REQUIRE(second != std::string::npos);
    each(line.substr(0, second), name, [&](const std::string& one) {
      ++alarms;
      CHECK_MESSAGE(contains(rules, "sotto_" + one), one);
    });
    if (line.starts_with("| `phase`")) {
      each(line.substr(second), phase, [&](const std::string& one) {
        CHECK_MESSAGE(contains(rules, fmt::format("sotto_phase{{phase=\"{}\"", one)), one);
      });
    }
  }
  CHECK(alarms > 30);
}

}  // namespace

TEST_CASE("the alarms are rules that Prometheus takes, of figures that a site serves") {
  const std::filesystem::path sites_folder = SOTTO_FAULT_PLANS "/../sites";
  const std::string rules = text_of_file(sites_folder / "alerts.yml");
  Sites sites({"a", "b"});
  sites.write("a", "rounds = 0\neval-every = 20");
  sites.write("b", "rounds = 0\neval-every = 20\nnoise-multiplier = 2\nclip-norm = 1");
  sites.start_all();
  sites.await_round("a", 40);
  // Figures of privacy are on b's page, those of runs with one model on that of such a run's node.
  const std::string page =
      sites.ask("a", "/metrics") + sites.ask("b", "/metrics") + page_of_one_model();
  const std::regex figure("sotto_[a-z_]+");
  std::set<std::string> named;
  for (std::sregex_iterator at(rules.begin(), rules.end(), figure), end; at != end; ++at) {
    named.insert(at->str());
  }
  CHECK(named.size() > 15);
  check_documented_alarms(rules);
  for (const std::string& name : named) {
    CHECK_MESSAGE(contains(page, "# TYPE " + name + " "), name);
  }
  if (!has_promtool()) {
    SOTTO_SKIP("no promtool (package prometheus)");
  }
  const Ended ended =
      shell("promtool check rules " + (sites_folder / "alerts.yml").string() + " 2>&1");
  CHECK_MESSAGE(ended.status == 0, ended.out);
  // The documents' prometheus.yml, beside the rules.
  const Scratch scratch;
  std::filesystem::copy_file(sites_folder / "alerts.yml", scratch.path() / "alerts.yml");
  for (const Block& block : all_blocks(SOTTO_DOCS "/..")) {
    if (block.language == "yaml") {
      const auto path = scratch.path() / "prometheus.yml";
      std::ofstream(path) << block.text();
      const Ended taken = shell("promtool check config " + path.string() + " 2>&1");
      CHECK_MESSAGE(taken.status == 0, block.place(), taken.out);
    }
  }
}

TEST_CASE("a site writes its evaluations for TensorBoard") {
  if (!sotto::has_event_records()) {
    SOTTO_SKIP("this build has no ISA-L");
  }
  const Scratch scratch;
  Sites sites({"a", "b"});
  sites.write_all("rounds = 6\neval-every = 3");
  sites.start("a", {"--tensorboard", scratch.path().string()});
  sites.start("b");
  const auto result = sites.finish("a");
  sites.finish("b");
  const auto records = records_of(text_of_file(event_file(scratch.path())));
  CHECK(records.size() == 1 + result.at("history").size());
  // All figures that a site has, and no other: what it does not know is not 0.
  std::set<std::string> tags;
  for (const auto& figure : sotto::run_figures()) {
    const auto tag = fmt::format("{}/{}", figure.info.group, figure.info.name);
    if (contains(records.back(), tag + "\x15")) {  // the field behind it: its value
      tags.insert(tag);
    }
  }
  CHECK(tags == std::set<std::string>{"quality/test_loss", "quality/test_accuracy", "health/mass",
                                      "network/sent_bytes_per_node", "time/training_seconds"});
}

TEST_CASE("messages about outputs call them by their flags") {
  CLI::App train("sotto train");
  sotto::cli::ObserveOptions options;
  sotto::cli::add_observe_options(train, options);
  const sotto::console::FlagSpelling flags(train);
  sotto::TelemetryOptions outputs;
  for (const sotto::Setting& output : sotto::telemetry_settings(outputs).settings) {
    CHECK(flags.subject(output.name) == "--" + std::string(output.name));
  }
  CHECK(flags.subject("mllog") == "--mllog");
}

TEST_CASE("labels of metrics hold what Prometheus lets them hold") {
  CHECK(sotto::metric_label("peer", "a\"b\\c\nd") == "peer=\"a\\\"b\\\\c d\"");
}

TEST_CASE("every figure has a line in the manual") {
  const std::string manual = text_of_file(std::filesystem::path(SOTTO_DOCS) / "observability.md");
  const auto check_in = [&](std::string_view name) {
    CHECK_MESSAGE(contains(manual, fmt::format("`{}`", name)), name);
  };
  for (const auto& figure : sotto::run_figures()) {
    check_in(figure.info.name);
  }
  for (const auto& figure : sotto::node_figures()) {
    check_in(figure.info.name);
  }
  for (const auto& figure : sotto::link_figures()) {
    check_in(figure.info.name);
  }
}

}  // namespace sotto::test::observe_test
