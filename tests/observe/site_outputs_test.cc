// What a program's own site, and a node of a run whose nodes come and go, show to operators.
#include <sotto/observe/site_outputs.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sotto/base/error.h>
#include <sotto/comm/transport.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/observe/monitor.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/sites/process/site_optimizer.h>

#include "support/free_port.h"
#include "support/scratch.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::site_outputs_test {

namespace {

bool has_channels() {
  return std::ranges::any_of(transports(),
                             [](const auto& one) { return one.name == "zmq" && one.available; });
}

/// A site "a" whose only peer "b" never comes.
SiteOptions alone() {
  std::vector<TrustedPeer> lines(2);
  const KeyPair own = make_key_pair();
  for (Rank k = 0; k < 2; ++k) {
    TrustedPeer& line = lines[static_cast<std::size_t>(k)];
    line.rank = k;
    line.name = k == 0 ? "a" : "b";
    line.key = k == 0 ? own.public_key : make_key_pair().public_key;
    line.address = k == 0 ? "" : "127.0.0.1:9";  // it dials, in vain
  }
  SiteOptions options{.security = {.own = own, .peers = std::make_shared<AllowList>(lines)}};
  options.name = "a";
  options.found_after = std::chrono::milliseconds(1);
  options.rounds = 3;
  return options;
}

/// Events, as they are heard.
struct Heard {
  std::mutex mutex;
  std::vector<SiteEvent::Kind> kinds;
  SiteListener listener() {
    return [this](const SiteEvent& event) {
      const std::lock_guard lock(mutex);
      kinds.push_back(event.kind);
    };
  }
};

nlohmann::json status_at(const std::string& port) {
  return nlohmann::json::parse(ask_monitor(parse_monitor_address(port), "/status"));
}

}  // namespace

TEST_CASE("a program's site has a monitor, scalars for TensorBoard and an audit file") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  const std::string port = fmt::to_string(free_port());
  const SiteOutputOptions shown{.monitor = port,
                                .tensorboard = (scratch.path() / "board").string(),
                                .audit = (scratch.path() / "audit").string()};
  Heard heard;
  SiteOutputs outputs(shown, heard.listener());
  SiteOptions options = alone();
  outputs.attach(options);
  CHECK(status_at(port).at("name") == "a");  // before there is an optimizer
  std::vector<float> x(10);
  {
    SiteOptimizer site(options, "", x, {}, outputs.listener());
    REQUIRE(site.connect().ok());
    while (!site.over()) {
      REQUIRE(site.step(std::vector<float>(10, 1), 0.5).ok());
      site.evaluated({.loss = 0.25, .accuracy = 0.75});
    }
    CHECK(status_at(port).at("round") == 3);
    CHECK(status_at(port).at("evaluation").at("accuracy") == 0.75);
    CHECK(ask_monitor(parse_monitor_address(port), "/metrics").find("sotto_round 3\n") !=
          std::string::npos);
    REQUIRE(site.finish().ok());
  }
  CHECK(std::ranges::count(heard.kinds, SiteEvent::Kind::started) == 1);
  SiteOptions second = alone();
  SiteOutputs again({.audit = shown.audit});
  CHECK_THROWS_WITH_AS(again.attach(second), doctest::Contains("another process writes to it"),
                       Error);
  SiteOutputs neighbour({.monitor = port});
  CHECK_THROWS_AS(neighbour.attach(second), Shortage);
  CHECK(text_of_file(shown.audit).find("2 sites, SHA-256 ") != std::string::npos);
  CHECK(text_of_file(shown.audit).find("\"event\":\"started\"") != std::string::npos);
  CHECK(!std::filesystem::is_empty(shown.tensorboard));
}

TEST_CASE("a node of one model shows its epoch, and has no audit file") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  const std::string port = fmt::to_string(free_port());
  const std::string board = (scratch.path() / "board").string();
  SiteOutputs outputs({.monitor = port, .tensorboard = board});
  ElasticOptions options;
  options.name = "one";
  options.roster.least = options.roster.most = 1;
  options.roster.seeds = {fmt::format("127.0.0.1:{}", free_port())};
  options.found_after = std::chrono::milliseconds(1);
  options.rounds = 2;
  outputs.attach(options);
  std::vector<float> x(10);
  ElasticOptimizer node(options, x, {}, outputs.listener());
  REQUIRE(node.connect().ok());
  while (!node.over()) {
    REQUIRE(node.step(std::vector<float>(10, 1)).ok());
    node.evaluated({.loss = 0.25});
  }
  CHECK(status_at(port).at("name") == "one");
  CHECK(ask_monitor(parse_monitor_address(port), "/metrics").find("sotto_epoch_members 1\n") !=
        std::string::npos);
  REQUIRE(node.finish().ok());
  std::string scalars;
  for (const auto& file : std::filesystem::recursive_directory_iterator(board)) {
    scalars += file.is_regular_file() ? text_of_file(file.path()) : "";
  }
  CHECK(scalars.find("epoch_members") != std::string::npos);
  CHECK(scalars.find("nodes_up") != std::string::npos);
  CHECK(scalars.find("mass") == std::string::npos);  // which a node of one model does not have
  SiteOutputs audited({.audit = "audit"});
  CHECK_THROWS_WITH_AS(audited.attach(options),
                       "audit: 'audit' is refused: a run whose nodes come and go has no list of "
                       "peers; leave it out",
                       Error);
  SiteOptions by_roster = options_by_roster({}, "two");
  CHECK_THROWS_WITH_AS(audited.attach(by_roster), doctest::Contains("has no list of peers"), Error);
}

TEST_CASE("a monitor listens on this host alone") {
  CHECK_THROWS_AS(SiteOutputs({.monitor = "0.0.0.0:9464"}), Error);
}

}  // namespace sotto::test::site_outputs_test
