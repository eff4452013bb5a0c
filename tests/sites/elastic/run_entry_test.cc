// How a node comes into a run, as far as it has met nobody: what is refused, and votes in a folder.
#include "../../../sites/elastic/internal/run_entry.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/sites/elastic/elastic_assembly.h>

#include "support/scratch.h"

namespace sotto::test::run_entry_test {

namespace {

/// A node with these options, and the votes in their folder.
struct Node {
  explicit Node(ElasticOptions given) : options(std::move(given)) {}

  ElasticOptions options;
  std::vector<float> parameters = std::vector<float>(5);
  ParameterLayout layout = complete_layout({}, parameters.size());
  FoundingVotes votes{options.state, options.name};
  OwedStep owed{};
  ElasticConnections connections{options, "", parameters.size(), votes, clock, {}};
  ElasticReporter reporter{options, "", parameters.size(), connections, {}};
  RunEntry entry{{.options = options,
                  .parameters = parameters,
                  .layout = layout,
                  .votes = votes,
                  .owed = owed,
                  .connections = connections,
                  .reporter = reporter,
                  .clock = clock}};

 private:
  static sites::EpochTime clock() { return sites::EpochTime(1); }
};

ElasticOptions options_of(const std::string& state) {
  ElasticOptions options;
  options.name = "a";
  options.step_rule = {.rule = "adam", .learning_rate = 0.05};
  options.state = state;
  options.roster.seeds = {"127.0.0.1:1"};
  return options;
}

}  // namespace

TEST_CASE("run entries: what a member refuses is refused before anybody is met") {
  ElasticOptions refused = options_of("");
  refused.compressor = "nothing";
  CHECK_THROWS_AS(Node{refused}, Error);
  const Node node(options_of(""));
  CHECK(node.entry.member() == nullptr);
  CHECK_FALSE(node.entry.founded());
  CHECK_FALSE(node.entry.is_empty());
  CHECK_FALSE(node.entry.took_part());
}

TEST_CASE("run entries: votes count, but for those of a run that may be followed by another") {
  const Scratch scratch;
  const ElasticOptions options = options_of((scratch.path() / "node").string());
  CHECK(FoundingVotes(options.state, "a").keep(std::vector<std::byte>(3)).ok());
  CHECK(Node(options).entry.founded());
  ElasticOptions again = options;
  again.begin_again_after = std::chrono::milliseconds(300);
  CHECK(Node(again).entry.founded());
  CHECK(Node(options).entry.note_end({.steps = 4, .all_left = true}).ok());
  CHECK(Node(options).entry.founded());
  CHECK_FALSE(Node(again).entry.founded());
}

TEST_CASE("run entries: a model with which a run put its node out is neither kept nor written") {
  const Scratch scratch;
  Node node(options_of((scratch.path() / "node").string()));
  KeptModel kept(node.votes.folder(), node.options, node.layout, nullptr, node.reporter);
  for (const bool sound : {false, true}) {
    sites::EpochSetup setup = member_setup(node.options, false, node.parameters, node.layout);
    setup.incarnation = 1;
    sites::EpochMember member(std::move(setup), sites::EpochTime(0));
    ByteBuffer snapshot;
    member.save(snapshot);
    REQUIRE(member.begin_from(4, snapshot.bytes()).ok());
    if (!sound) {
      member.distrust_model();
    }
    kept.keep_of(member);
    CHECK(kept.next().has_value() == sound);
    kept.write(&member, true);
    KeptModel read(node.votes.folder(), node.options, node.layout, nullptr, node.reporter);
    read.read(member);
    CHECK(read.next().has_value() == sound);
  }
}

TEST_CASE("run entries: a model that is whole on the disk and not sound is set aside") {
  const Scratch scratch;
  const auto folder = scratch.path() / "node";
  {
    Node node(options_of(folder.string()));
    KeptModel kept(node.votes.folder(), node.options, node.layout, nullptr, node.reporter);
    sites::EpochSetup setup = member_setup(node.options, false, node.parameters, node.layout);
    setup.incarnation = 1;
    sites::EpochMember member(std::move(setup), sites::EpochTime(0));
    ByteBuffer snapshot;
    member.save(snapshot);
    for (const Round step : {Round{4}, Round{6}}) {
      REQUIRE(member.begin_from(step, snapshot.bytes()).ok());
      if (step == 6) {
        node.parameters[2] = std::numeric_limits<float>::infinity();
      }
      kept.write(&member, true);
    }
    REQUIRE(read_site_state(folder.string()).value()->state.round == 6);
  }
  for (int start = 0; start < 2; ++start) {
    CAPTURE(start);
    Node node(options_of(folder.string()));
    CHECK(node.parameters == std::vector<float>(5));  // what the caller gave stays until it joins
    CHECK(read_site_state(folder.string()).value()->state.round == 4);
    CHECK(std::filesystem::exists(folder / "state.b.damaged"));
    CHECK_FALSE(std::filesystem::exists(folder / "state.b"));
  }
}

TEST_CASE("run entries: a model whose rule of local steps has a damaged memory is set aside") {
  const Scratch scratch;
  const auto folder = scratch.path() / "node";
  ElasticOptions options = options_of(folder.string());
  options.communication_interval = 2;
  std::vector<std::byte> remembered;
  {
    Node node(options);
    sites::EpochSetup setup = member_setup(node.options, false, node.parameters, node.layout);
    setup.incarnation = 1;
    sites::EpochMember member(std::move(setup), sites::EpochTime(0));
    ByteBuffer snapshot;
    member.save(snapshot);
    // At step 6 a rule of another model wrote what is longer.
    for (const auto& [step, size] : {std::pair<Round, std::size_t>{4, 5}, {6, 9}}) {
      std::vector<float> x(size);
      auto local = make_local_steps(node.options, x, complete_layout({}, size));
      REQUIRE(local);
      local->take_initial();
      REQUIRE(local->take(0, std::vector<float>(size, 1), 0).ok());
      KeptModel kept(node.votes.folder(), node.options, node.layout, &*local, node.reporter);
      REQUIRE(member.begin_from(step, snapshot.bytes()).ok());
      kept.write(&member, true);
      if (step == 4) {
        ByteBuffer out;
        local->save(out);
        remembered = std::move(out).take();
      }
    }
    REQUIRE(read_site_state(folder.string()).value()->state.round == 6);
  }
  for (int start = 0; start < 2; ++start) {
    CAPTURE(start);
    Node node(options);
    sites::EpochSetup setup = member_setup(node.options, false, node.parameters, node.layout);
    setup.incarnation = 1;
    sites::EpochMember trial(std::move(setup), sites::EpochTime(0));
    auto local = make_local_steps(node.options, node.parameters, node.layout);
    KeptModel kept(node.votes.folder(), node.options, node.layout, &*local, node.reporter);
    kept.read(trial);
    REQUIRE(kept.next());
    CHECK(kept.next()->step == 4);
    ByteBuffer out;
    local->save(out);
    CHECK(std::ranges::equal(out.bytes(), remembered));
    CHECK(std::filesystem::exists(folder / "state.b.damaged"));
  }
}

}  // namespace sotto::test::run_entry_test
