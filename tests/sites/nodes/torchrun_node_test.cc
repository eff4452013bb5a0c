// From torchrun's variables to the settings of a node that comes and goes.
#include <sotto/sites/nodes/torchrun_node.h>

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sites/elastic/elastic_settings.h>
#include <sotto/sites/nodes/roster_settings.h>

#include "support/scratch.h"

namespace sotto::test::torchrun_node_test {

namespace {

using Variables = std::map<std::string, std::string>;

/// What the second agent of two says to its second worker.
Variables worker() {
  return {{"RANK", "3"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"GROUP_RANK", "1"},
          {"MASTER_ADDR", "head"},
          {"MASTER_PORT", "4000"},
          {"TORCHELASTIC_RUN_ID", "job/7 a"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"TORCHELASTIC_MAX_RESTARTS", "3"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
}

std::optional<TorchrunNode> read(const Variables& variables) {
  return read_torchrun([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

/// A worker with some variables changed.
std::optional<TorchrunNode> read_with(const Variables& changed) {
  Variables all = changed;
  all.merge(worker());
  return read(all);
}

std::optional<TorchrunNode> read_without(const std::string& name) {
  Variables all = worker();
  all.erase(name);
  return read(all);
}

}  // namespace

TEST_CASE("torchrun's worker meets the others in the store of its agents under the run's name") {
  const auto node = read(worker());
  REQUIRE(node);
  CHECK(node->seeds == "torch://head:4000/job/7 a");
  CHECK(node->worker == "w1.2");
  CHECK(node->restarts);
  // All of one group have the same seeds, and those of one host names of their own.
  const auto other = read_with({{"RANK", "0"}, {"LOCAL_RANK", "0"}});
  CHECK(other->seeds == node->seeds);
  CHECK(other->worker == "w0.2");
  CHECK(read_with({{"TORCHELASTIC_RESTART_COUNT", "0"}})->worker == "w1.0");
  CHECK(read_with({{"TORCHELASTIC_RESTART_COUNT", "0"}})->seeds == node->seeds);
  CHECK(read_with({{"TORCHELASTIC_RUN_ID", "none"}})->seeds == "torch://head:4000/none");
  CHECK_FALSE(read_with({{"TORCHELASTIC_MAX_RESTARTS", "0"}})->restarts);
}

TEST_CASE("torchrun's worker whose agent serves no store has node 0's place as the first seed") {
  CHECK(read_with({{"TORCHELASTIC_USE_AGENT_STORE", "False"}})->seeds == "head:4000");
  CHECK(read_without("TORCHELASTIC_USE_AGENT_STORE")->seeds == "head:4000");
  Variables all = worker();
  all.erase("TORCHELASTIC_USE_AGENT_STORE");
  all.erase("MASTER_PORT");
  CHECK(read(all)->seeds == "head:29500");
}

TEST_CASE("torchrun's workers that are all on one host meet on loopback") {
  const Variables here = {{"LOCAL_WORLD_SIZE", "4"}, {"LOCAL_RANK", "3"}};
  CHECK(read_with(here)->seeds == "torch://127.0.0.1:4000/job/7 a");
  Variables no_store = here;
  no_store.insert({"TORCHELASTIC_USE_AGENT_STORE", "False"});
  CHECK(read_with(no_store)->seeds == "127.0.0.1:4000");
}

TEST_CASE("without torchrun there is nothing to say and what is missing has the least") {
  CHECK_FALSE(read({}));
  CHECK_FALSE(read({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "head"}}));
  const auto plain = read(
      {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "head"}, {"TORCHELASTIC_RUN_ID", "r"}});
  REQUIRE(plain);
  CHECK(plain->worker == "w0.0");
  CHECK_FALSE(plain->restarts);
}

TEST_CASE("variables of torchrun that make no sense are refused by name") {
  for (const std::string name : {"RANK", "WORLD_SIZE", "MASTER_ADDR"}) {
    CAPTURE(name);
    const std::string said = refusal([&] { (void)read_without(name); });
    CHECK(contains(said, name + " is not"));
    CHECK(contains(said, "TORCHELASTIC_RUN_ID"));
  }
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"RANK", "4"},
      {"RANK", "-1"},
      {"WORLD_SIZE", "0"},
      {"LOCAL_RANK", "2"},
      {"LOCAL_RANK", "one"},
      {"LOCAL_WORLD_SIZE", "0"},
      {"MASTER_PORT", "70000"},
      {"MASTER_ADDR", ""},
      {"TORCHELASTIC_RUN_ID", "one,two"},
      {"TORCHELASTIC_RESTART_COUNT", "-1"},
      {"TORCHELASTIC_MAX_RESTARTS", "many"}};
  for (const auto& each : wrong) {
    CAPTURE(each.first);
    CAPTURE(each.second);
    CHECK(contains(refusal([&] { (void)read_with({each}); }), each.first));
  }
}

TEST_CASE("torchrun fills in what a node of one model was not told and nothing else") {
  const auto node = read(worker());
  REQUIRE(node);
  ElasticSettings settings;
  settings.roster.nodes = "2:16";
  take_torchrun(settings, *node);
  CHECK(settings.roster.seeds == node->seeds);
  CHECK(contains(settings.roster.name, "-w1.2-"));
  CHECK(settings.begin_again_after_s == 15.0);
  const ElasticOptions options = options_of(settings);
  CHECK(options.roster.seeds == std::vector<std::string>{node->seeds});
  CHECK(by_store(options.roster));
  CHECK(options.name == settings.roster.name);
  ElasticSettings again;
  take_torchrun(again, *node);
  CHECK(again.roster.name != settings.roster.name);  // two agents on a host, or two starts

  ElasticSettings told;
  told.roster.name = "mine";
  told.begin_again_after_s = 3;
  take_torchrun(told, *node);
  CHECK(told.roster.name == "mine");
  CHECK(told.begin_again_after_s == 3.0);
  ElasticSettings elsewhere;
  elsewhere.roster.seeds = "node1:9000";
  take_torchrun(elsewhere, *node);
  CHECK(elsewhere.roster.seeds == "node1:9000");
  CHECK(elsewhere.roster.name.empty());
  CHECK_FALSE(elsewhere.begin_again_after_s);
  ElasticSettings gossip;
  gossip.training.algorithm = "pushsum";
  take_torchrun(gossip, *node);
  CHECK(gossip.roster.seeds == node->seeds);
  CHECK_FALSE(gossip.begin_again_after_s);
  ElasticSettings once;
  take_torchrun(once, *read_with({{"TORCHELASTIC_MAX_RESTARTS", "0"}}));
  CHECK_FALSE(once.begin_again_after_s);
}

}  // namespace sotto::test::torchrun_node_test
