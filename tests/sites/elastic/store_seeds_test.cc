// An all-reduce whose nodes come and go, over real channels, of nodes that know a folder alone:
// they are in one run, whoever is first, and another one is begun only where that is lost.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/shared_store.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/sites/nodes/stores/node_store.h>

#include "support/scratch.h"

namespace sotto::test::store_seeds_test {
using namespace std::chrono_literals;

namespace {

class Folder {
 public:
  explicit Folder(RunKey key = RunKey(make_key_pair())) : key_(std::move(key)) {}

  const RunKey& key() const { return key_; }
  std::string url() const { return "file:" + (scratch_.path() / "shared").string(); }
  std::string state(const std::string& name) const { return scratch_.path() / name; }
  ElasticOptions options(const std::string& name, std::size_t least) const {
    ElasticOptions options;
    options.name = name;
    options.roster = {.least = least, .most = 4, .seeds = {url()}, .key = key_};
    options.listen = "127.0.0.1:0";
    options.found_after = 1ms;
    options.wait_limit = 2min;  // a test that fails ends
    return options;
  }
  /// The address of a node that has a lease; waits for one.
  std::string address() const {
    while (true) {
      const auto places = store().leases.places(Deadline::after(1min)).value();
      for (const auto& place : places) {
        if (place.lease) {
          return place.lease->address;
        }
      }
    }
  }
  /// Puts a lease into the first place that is empty.
  void put(const sites::SeedLease& lease) const {
    NodeStore to = store();
    for (std::size_t place = 0; !to.leases.claim(place, lease, Deadline::after(1min)).value();
         ++place) {
    }
  }
  /// The run that was begun last.
  std::optional<StoredRun> latest() const {
    return store().runs.latest(Deadline::after(1min)).value();
  }
  std::size_t leases() const {
    const auto places = store().leases.places(Deadline::after(1min)).value();
    return static_cast<std::size_t>(
        std::ranges::count_if(places, [](const auto& place) { return place.lease.has_value(); }));
  }

 private:
  NodeStore store() const { return {make_shared_store("seeds", url()), key_}; }

  const Scratch scratch_;
  const RunKey key_;
};

/// A node that trains until it is told to end.
class Node {
 public:
  explicit Node(ElasticOptions options, SiteListener listener = {})
      : x_(5),
        optimizer_(stopping(std::move(options), stop_), x_, {}, std::move(listener)),
        thread_([this] { train(); }) {}
  ~Node() {
    stop_ = true;
    thread_.join();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// It leaves in good order, where it ends else as one that is killed.
  void leave() {
    leaves_ = true;
    stop_ = true;
    ended_.wait(false);
  }
  /// Until it has made so many steps.
  void await(Round steps) const {
    for (Round seen = round_; seen < steps; seen = round_) {
      REQUIRE_MESSAGE(!ended_, status_.message());
      round_.wait(seen);
    }
  }
  /// Until it is a member beside others; the run's number.
  std::string run(std::size_t members) const {
    while (true) {
      const SiteReport report = optimizer_.report();
      REQUIRE_MESSAGE(!ended_, status_.message());
      if (report.epoch && report.epoch->members.size() == members) {
        return report.epoch->run;
      }
      std::this_thread::sleep_for(2ms);
    }
  }

 private:
  static ElasticOptions stopping(ElasticOptions options, const std::atomic<bool>& stop) {
    options.stop = &stop;
    return options;
  }
  void train() {
    const std::vector<float> gradient(x_.size());
    status_ = optimizer_.connect();
    while (status_.ok() && !optimizer_.over()) {
      status_ = optimizer_.step(gradient).status();
      round_ = optimizer_.round();
      round_.notify_all();
    }
    if (leaves_) {
      status_ = optimizer_.finish();
    }
    ended_ = true;
    ended_.notify_all();
    round_ = ~Round{0};
    round_.notify_all();
  }

  std::atomic<bool> stop_{false};
  std::atomic<bool> leaves_{false};
  std::atomic<bool> ended_{false};
  std::atomic<Round> round_{0};
  Status status_;
  std::vector<float> x_;
  ElasticOptimizer optimizer_;
  std::thread thread_;
};

std::string text_of(const StoredRun& run) {
  return fmt::format("{:016x}{:016x}", run.id[1], run.id[0]);
}

}  // namespace

TEST_CASE("elastic nodes by a store: nodes that know a folder alone train and come and go") {
  const Folder folder;
  std::optional<Node> a(folder.options("a", 3));
  std::optional<Node> b(folder.options("b", 3));
  CHECK_FALSE(folder.latest());
  std::optional<Node> c(folder.options("c", 3));
  const std::string run = a->run(3);
  const StoredRun begun = folder.latest().value();
  CHECK(begun.number == 1);
  CHECK(text_of(begun) == run);
  CHECK(b->run(3) == run);
  CHECK(c->run(3) == run);
  a->await(3);
  CHECK(folder.leases() == 3);
  // The one that began it may go; a newcomer finds the others.
  std::optional<Node>& founder = begun.name == "a" ? a : begun.name == "b" ? b : c;
  std::optional<Node>& other = begun.name == "a" ? b : a;
  founder->leave();
  founder.reset();
  CHECK(folder.leases() == 2);
  const Node d(folder.options("d", 3));
  CHECK(d.run(3) == run);
  CHECK(other->run(3) == run);
  CHECK(folder.latest() == begun);
}

TEST_CASE("elastic nodes by a store: a lease whose address is another run's ends no newcomer") {
  const Folder other;
  const Node stranger(other.options("stranger", 1));
  CHECK_FALSE(stranger.run(1).empty());
  const Folder folder(other.key());
  // A node that was killed had the address before it.
  folder.put({.name = "dead", .incarnation = 7, .address = other.address(), .count = 3});
  std::atomic<int> told{0};
  const Node a(folder.options("a", 2), [&](const SiteEvent& event) {
    told += event.kind == SiteEvent::Kind::other_settings ? 1 : 0;
  });
  const Node b(folder.options("b", 2));
  CHECK(a.run(2) == b.run(2));
  CHECK(stranger.run(1) != a.run(2));
  CHECK(told == 1);
}

TEST_CASE("elastic nodes by a store: nodes that could each begin a run alone begin one") {
  for (int play = 0; play < 3; ++play) {
    const Folder folder;
    std::vector<std::vector<float>> models(3, std::vector<float>(5));
    std::vector<std::unique_ptr<ElasticOptimizer>> nodes;
    for (std::size_t k = 0; k < models.size(); ++k) {
      nodes.push_back(std::make_unique<ElasticOptimizer>(folder.options("n" + std::to_string(k), 1),
                                                         models[k]));
    }
    std::vector<std::future<Status>> connected;
    for (const auto& node : nodes) {
      connected.push_back(std::async(std::launch::async, [&node] { return node->connect(); }));
    }
    for (std::future<Status>& one : connected) {
      const Status status = one.get();
      CHECK_MESSAGE(status.ok(), status.message());
    }
    const StoredRun begun = folder.latest().value();
    CHECK(begun.number == 1);
    for (const auto& node : nodes) {
      CHECK(node->report().epoch->run == text_of(begun));
    }
  }
}

TEST_CASE("elastic nodes by a store: a run that is lost is begun again once and where it may be") {
  const Folder folder;
  const auto options = [&](const std::string& name, bool again) {
    ElasticOptions one = folder.options(name, 2);
    one.state = folder.state(name);
    one.save_every = 1;
    one.begin_again_after = again ? std::optional(200ms) : std::nullopt;
    return one;
  };
  {
    Node a(options("a", true));
    const Node b(options("b", true));
    a.await(5);
  }
  REQUIRE(folder.latest()->number == 1);
  {
    std::vector<float> x(5);
    ElasticOptions waits = options("a", false);
    waits.wait_limit = 300ms;
    ElasticOptimizer node(waits, x);
    const Status status = node.connect();
    CHECK(status.fault() == Fault::deadline);
    CHECK_MESSAGE(status.message().find("has begun run 1") != std::string::npos, status.message());
  }
  const Node a(options("a", true));
  const Node b(options("b", true));
  b.await(8);
  const StoredRun begun = folder.latest().value();
  CHECK(begun.number == 2);
  CHECK(begun.step > 0);
  CHECK(a.run(2) == text_of(begun));
}

TEST_CASE("elastic nodes by a store: who comes after the end of a run is told so") {
  const Folder folder;
  ElasticOptions options = folder.options("a", 1);
  options.rounds = 3;
  std::vector<float> x(5);
  {
    ElasticOptimizer node(options, x);
    Status status = node.connect();
    while (status.ok() && !node.over()) {
      status = node.step(x).status();
    }
    CHECK_MESSAGE(status.ok(), status.message());
    CHECK(node.finish().ok());
  }
  CHECK(folder.leases() == 0);
  ElasticOptimizer late(options, x);
  const Status status = late.connect();
  CHECK(status.fault() == Fault::ended);
  CHECK_MESSAGE(status.message().find("is over, after step 3") != std::string::npos,
                status.message());
  ElasticOptions more = folder.options("b", 1);
  more.rounds = 9;
  more.wait_limit = 100ms;
  ElasticOptimizer further(more, x);
  CHECK(further.connect().fault() == Fault::ended);  // all had left
}

TEST_CASE("elastic nodes by a store: a folder that has gone ends a node that starts and no other") {
  const Folder folder;
  const std::string path = folder.url().substr(std::string("file:").size());
  ElasticOptions options = folder.options("a", 1);
  options.roster.store_patience = 100ms;
  Node a(options);
  a.await(1);
  std::filesystem::remove_all(path);
  const Round then = 200;
  a.await(then);
  // One that finds no folder makes it, unless it may not.
  options.name = "b";
  options.roster.seeds = {"file:/proc/nowhere"};
  std::vector<float> x(5);
  ElasticOptimizer node(options, x);
  CHECK_THROWS_WITH_AS((void)node.connect(), doctest::Contains("directory"), Error);
}

}  // namespace sotto::test::store_seeds_test
