// What a user sees before any run: help, version, the list, and wrong words.
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"

using namespace sotto::test;

TEST_CASE("the program and every command have help, with examples") {
  const auto help = run({"--help"});
  CHECK(help.status == 0);
  const Arguments commands[] = {{"train"}, {"topology"}, {"list"}, {"bench", "codec"}};
  for (const Arguments& command : commands) {
    CAPTURE(command[0]);
    CHECK(contains(help.out, command[0]));
    Arguments words = command;
    words.push_back("--help");
    const auto own = run(words);
    CHECK(own.status == 0);
    CHECK(contains(own.out, "Examples:"));
    CHECK(contains(own.out, "--json"));
    CHECK(contains(own.out, "--config"));
  }
}

TEST_CASE("the version is the project's") {
  const auto version = run({"--version"});
  CHECK(version.status == 0);
  CHECK(version.out == std::string("sotto ") + SOTTO_VERSION + "\n");
}

TEST_CASE("no command, an unknown one and an unknown option are wrong requests") {
  for (const Arguments& words : {Arguments{}, {"trian"}, {"list", "--colour"}, {"list", "extra"}}) {
    const auto ended = run(words);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    CHECK_FALSE(ended.err.empty());
  }
}

TEST_CASE("the list names what there is, to people and as JSON") {
  const auto json = run({"list", "--json", "-"}).json();
  const auto names = [&](const char* section) {
    std::set<std::string> found;
    for (const auto& item : json.at(section)) {
      found.insert(item.at("name").get<std::string>());
    }
    return found;
  };
  CHECK(json.at("sotto") == SOTTO_VERSION);
  for (const char* name : {"allreduce", "dpsgd", "dcd", "ecd", "deepsqueeze", "choco"}) {
    CHECK(names("algorithms").contains(name));
  }
  for (const char* name : {"none", "quant", "sign", "topk"}) {
    CHECK(names("compressors").contains(name));
  }
  CHECK(names("topologies").contains("ring"));
  CHECK(names("transports").contains("inproc"));
  CHECK(names("tasks").contains("digits"));
  CHECK(names("models").contains("mlp"));
  for (const auto& algorithm : json.at("algorithms")) {
    CHECK_FALSE(algorithm.at("contract").get<std::string>().empty());
    CHECK_FALSE(algorithm.at("graph").get<std::string>().empty());
  }
  const auto table = run({"list"});
  CHECK(table.status == 0);
  CHECK(contains(table.out, "deepsqueeze"));
  CHECK(run({"list", "--quiet"}).out.empty());
}
