// All that tells of a loop of a program's own, read back as other programs read it.
#include <sotto/observe/telemetry.h>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/observe/figures.h>
#include <sotto/observe/monitor.h>

#include "observe/observed.h"
#include "support/free_port.h"
#include "support/scratch.h"
#include "support/skip.h"
#include "trainers/nodes.h"

namespace sotto::test::telemetry_test {

using nlohmann::json;

namespace {

constexpr int kNodes = 4;
constexpr Round kRounds = 20;

Status train(OptimizerOptions options, Rank rank, const std::function<void(Optimizer&)>& inspect) {
  options.rank = rank;
  std::vector<float> x(300, static_cast<float>(0.5));
  Optimizer optimizer(options, x);
  std::vector<float> gradient(x.size());
  for (Round round = 0; round < kRounds; ++round) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      gradient[k] = x[k] - static_cast<float>(rank) - 0.01F * static_cast<float>(k);
    }
    if (Status status = optimizer.step(gradient); !status.ok()) {
      return status;
    }
  }
  if (Status status = optimizer.evaluated(0.25, 0.75); !status.ok()) {
    return status;
  }
  if (rank == 0 && inspect) {
    inspect(optimizer);
  }
  return optimizer.finish();
}

void train_all(Observer& observer, const std::function<void(Optimizer&)>& inspect = nullptr) {
  auto options = options_for(kNodes, make_memory_store());
  options.compressor = "quant:4";
  options.observer = &observer;
  options.report_every = 8;
  for (const Status& status :
       play(kNodes, [&](Rank rank) { return train(options, rank, inspect); })) {
    CAPTURE(status.message());
    CHECK(status.ok());
  }
}

}  // namespace

TEST_CASE("every output of a program's own loop holds what its readers expect") {
  const Scratch scratch;
  const auto at = [&](const char* name) { return (scratch.path() / name).string(); };
  TelemetryOptions options{.log_json = at("run.jsonl"),
                           .mllog = at("mllog"),
                           .trace = at("trace.json"),
                           .config = R"({"model":"a \"name\""})",
                           .mllog_settings = {"own", 1, 128, "sgd", 0.05},
                           .whole_job = true};
  options.tensorboard = has_event_records() ? at("board") : "";
  {
    Telemetry telemetry(options);
    train_all(telemetry);
    CHECK(telemetry.outputs().size() == (options.tensorboard.empty() ? 3 : 4));
    CHECK(telemetry.outputs()[0] == "trace: " + at("trace.json"));
  }

  const auto lines = lines_of(options.log_json);
  REQUIRE(lines.size() == 6);  // two reports, one with a loss, one in the end
  CHECK(lines[0].at("event") == "began");
  CHECK(lines[0].at("config").at("model") == "a \"name\"");
  CHECK(lines[0].at("rounds").is_null());
  CHECK(lines[1].at("test_loss").is_null());
  CHECK(lines[3].at("test_loss") == 0.25);
  CHECK(lines[3].at("traffic_saving").get<double>() > 1);
  CHECK(lines[4].at("nodes").size() == kNodes);
  CHECK(lines[4].at("nodes")[3].at("node") == 3);
  CHECK(lines[5].at("event") == "ended");
  CHECK(lines[5].at("ok") == true);

  const json trace = json::parse(text_of_file(options.trace));
  const auto names = check_trace(trace);
  for (const char* name : {"round", "gradient", "encode", "decode", "wire"}) {
    CHECK(names.contains(name));
  }
  CHECK(trace.at("otherData").at("config").at("model") == "a \"name\"");

  std::vector<std::string> keys;
  for (const json& line : lines_of(options.mllog, ":::MLLOG ")) {
    keys.push_back(line.at("key"));
  }
  CHECK(std::ranges::count(keys, "eval_start") == 1);
  CHECK(std::ranges::count(keys, "eval_stop") == 1);
  CHECK(std::ranges::count(keys, "eval_accuracy") == 1);
  CHECK(keys.back() == "run_stop");

  if (!has_event_records()) {
    SOTTO_SKIP("this build has no ISA-L");
  }
  const auto records = records_of(text_of_file(event_file(options.tensorboard)));
  CHECK(records.size() == 5);  // the version, and as above
  CHECK(records[3].find("quality/test_loss") != std::string::npos);
  CHECK(records[4].find("quality/test_loss") == std::string::npos);
  CHECK(records[4].find("network/traffic_saving") != std::string::npos);
}

TEST_CASE("a program's own loop serves a page for Prometheus while it runs") {
  const int port = free_port();
  Telemetry telemetry({.metrics = std::to_string(port), .whole_job = true});
  std::string page;
  train_all(telemetry, [&](Optimizer&) { page = ask_monitor({"127.0.0.1", port}, "/metrics"); });
  CHECK(page.find("\nsotto_train_test_loss 0.25\n") != std::string::npos);
  CHECK(page.find("\nsotto_train_rounds ") == std::string::npos);
  CHECK(page.find(fmt::format("\nsotto_train_round {}\n", kRounds)) != std::string::npos);
  for (const auto& figure : run_figures()) {
    CHECK(page.find(fmt::format("\nsotto_train_{} ", figure.info.name)) != std::string::npos);
  }
  // What the report in the end does not say again is as it was.
  page = ask_monitor({"127.0.0.1", port}, "/metrics");
  CHECK(page.find("\nsotto_train_test_loss 0.25\n") != std::string::npos);
  CHECK(page.find("{node=\"3\"}") != std::string::npos);
}

TEST_CASE("of a launched job node 0 alone has pages, and each node a trace") {
  const Scratch scratch;
  const auto at = [&](const char* name) { return (scratch.path() / name).string(); };
  const Telemetry telemetry({.log_json = at("run.jsonl"), .trace = at("trace.json"), .rank = 2});
  CHECK(telemetry.wants_health());
  CHECK(telemetry.wants_phases());
  CHECK_FALSE(std::filesystem::exists(at("run.jsonl")));
  CHECK(std::filesystem::exists(at("trace.node-2.json")));
  CHECK_FALSE(Telemetry({.rank = 2}).wants_health());
}

TEST_CASE("telemetry that cannot be had is refused before anything runs") {
  CHECK_THROWS_AS(Telemetry({.log_json = "/proc/none/file", .rank = 0}), Error);
  CHECK_THROWS_AS(Telemetry({.metrics = "0.0.0.0:9100", .rank = 0}), Error);
  CHECK_THROWS_WITH_AS(Telemetry({.metrics = "99999", .rank = 0}),
                       doctest::Contains("metrics: '99999'"), Error);
}

TEST_CASE("a file that can no longer be written is told to whoever asked for it, once") {
  std::vector<std::string> told;
  Telemetry telemetry({.log_json = "/dev/full", .rank = 0, .warn = [&](const std::string& text) {
                         told.push_back(text);
                       }});
  train_all(telemetry);
  REQUIRE(told.size() == 1);
  CHECK(told[0] == "log_json: /dev/full: No space left on device; the run goes on without");
  CHECK(telemetry.outputs().at(0) == "log: /dev/full (in part: a write failed)");
}

TEST_CASE("what cannot be written when it is made is told as well") {
  std::vector<std::string> told;
  const Telemetry telemetry(
      {.mllog = "/dev/full", .mllog_settings = {}, .rank = 0, .warn = [&](const std::string& text) {
         told.push_back(text);
       }});
  REQUIRE(told.size() == 1);
  CHECK(told[0].starts_with("mllog: /dev/full: "));
}

TEST_CASE("a page shows a loss that became no number, and a second run begins it anew") {
  const int port = free_port();
  Telemetry telemetry({.metrics = std::to_string(port), .whole_job = true});
  const auto page = [&] { return ask_monitor({"127.0.0.1", port}, "/metrics"); };
  const auto shows = [&](const std::string& line) {
    return page().find("\nsotto_train_" + line + "\n") != std::string::npos;
  };
  telemetry.began({.nodes = 2, .dimension = 10});
  RunEvaluation evaluation{.point = {.round = 1, .loss = 0.5}};
  telemetry.evaluated(evaluation);
  CHECK(shows("test_loss 0.5"));
  evaluation.report = true;
  evaluation.point.loss = std::numeric_limits<double>::quiet_NaN();
  telemetry.evaluated(evaluation);
  CHECK(shows("test_loss 0.5"));
  evaluation.report = false;
  telemetry.evaluated(evaluation);
  CHECK(shows("test_loss NaN"));
  telemetry.began({.nodes = 3, .dimension = 10});
  CHECK(shows("nodes 3"));
  CHECK(page().find("test_loss") == std::string::npos);
}

TEST_CASE("a page leaves the program's signals as they are, and outlives clients that leave") {
  struct sigaction before {};
  struct sigaction after {};
  REQUIRE(::sigaction(SIGPIPE, nullptr, &before) == 0);
  const int port = free_port();
  const Monitor monitor({"127.0.0.1", port},
                        {{"/long", "text/plain", [] { return std::string(1 << 24, 'x'); }}});
  REQUIRE(::sigaction(SIGPIPE, nullptr, &after) == 0);
  const bool same = after.sa_handler == before.sa_handler;
  CHECK(same);
  for (int client = 0; client < 3; ++client) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(port);
    REQUIRE(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const std::string request = "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n";
    CHECK(::send(socket, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size()));
    char first = 0;
    CHECK(::recv(socket, &first, 1, 0) == 1);
    ::close(socket);  // with all the rest on its way
  }
  CHECK(ask_monitor({"127.0.0.1", port}, "/healthz") == "ok\n");
}

}  // namespace sotto::test::telemetry_test
