// Settings from a file.
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"

using namespace sotto::test;

namespace {

Ended with_file(std::string_view toml, const Arguments& more = {}) {
  const Scratch scratch;
  Arguments arguments = {"train", "--config", scratch.write("run.toml", toml).string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(arguments);
}

constexpr const char* kSmall =
    "task = \"digits,train=320,test=100\"\n"
    "model = \"softmax\"\n"
    "nodes = 2\n"
    "rounds = 3\n"
    "weight_decay = 0.25\n"
    "step-rule = \"sgd\"\n"
    "nesterov = true\n"
    "momentum = 0.5\n";

}  // namespace

TEST_CASE("a file gives settings, with dashes or underscores; the command line wins") {
  const auto config = with_file(kSmall, {"--nodes", "3", "--json", "-"}).json().at("config");
  CHECK(config.at("nodes") == 3);
  CHECK(config.at("rounds") == 3);
  CHECK(config.at("weight_decay") == 0.25);
  CHECK(config.at("nesterov") == true);
  CHECK(config.at("model") == "softmax");
}

TEST_CASE("of epochs and rounds the one on the command line counts") {
  const auto result = with_file(kSmall, {"--epochs", "2", "--json", "-"}).json();
  CHECK(result.at("rounds") == 10);  // 320 examples, 2 nodes, batches of 32
  const auto both = with_file("rounds = 3\nepochs = 1\n");
  CHECK(both.status == 2);
  CHECK(contains(both.err, "cannot stand beside"));
}

TEST_CASE("what a file has wrong is named with its line") {
  const auto refused = [](std::string_view toml) {
    const auto ended = with_file(toml);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    return ended.err;
  };
  CHECK(contains(refused("nodes = 2\nnoodles = 4\n"), "run.toml:2: 'noodles' is no setting"));
  CHECK(contains(refused("roudns = 4\n"), "did you mean rounds?"));
  CHECK(contains(refused("nodes = 2\nconfig = \"x\"\n"), "run.toml:2: 'config'"));
  CHECK(contains(refused("\nnodes = \"many\"\n"), "run.toml:2"));
  CHECK(contains(refused("nodes = [1, 2]\n"), "run.toml:1: 'nodes' must be"));
  CHECK(contains(refused("nodes = \n"), "run.toml:1: not TOML"));
  const auto absent = run({"train", "--config", "/nowhere.toml"});
  CHECK(absent.status == 2);
  CHECK(contains(absent.err, "'/nowhere.toml' is refused: there is no such file"));
}
