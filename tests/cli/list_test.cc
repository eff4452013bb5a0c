// What a user sees before any run: help, version, the list, and wrong words.
#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"

namespace sotto::test::list_test {

TEST_CASE("the program and every command have help, with examples") {
  const auto help = run({"--help"});
  CHECK(help.status == 0);
  const Arguments commands[] = {{"train"}, {"compare"}, {"topology"}, {"list"}, {"bench", "codec"}};
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

TEST_CASE("all commands say alike that standard output took no more") {
  for (const Arguments& words : {Arguments{"man"},
                                 {"list"},
                                 {"list", "--json", "-"},
                                 {"topology", "ring"},
                                 {"completion", "bash"},
                                 {"--version"}}) {
    CAPTURE(words[0]);
    Arguments shell = {"sh", "-c", "exec \"$@\" > /dev/full", "sh", SOTTO_PROGRAM};
    shell.insert(shell.end(), words.begin(), words.end());
    const auto ended = Process(shell).wait();
    CHECK(ended.status == 1);
    CHECK(ended.err == "sotto: standard output could not be written; the result is lost\n");
  }
}

TEST_CASE("the version is the project's") {
  const auto version = run({"--version"});
  CHECK(version.status == 0);
  CHECK(version.out == std::string("sotto ") + SOTTO_VERSION + "\n");
}

TEST_CASE("a wrong command line is named, with what may have been meant") {
  struct Case {
    Arguments words;
    std::string says;
  };
  const Case cases[] = {
      {{}, "name a command after `sotto`: train, compare"},
      {{"trian"}, "trian: there is no such command; did you mean train?"},
      {{"bench", "codek"}, "codek: there is no such command; did you mean codec?"},
      {{"list", "--jsn", "-"}, "--jsn: `sotto list` has no such option; did you mean --json?"},
      {{"list", "--colour"}, "--colour: `sotto list` has no such option;"},
      {{"list", "extra"}, "'extra': `sotto list` takes no such word"},
      {{"train", "--algoritm=choco"},
       "--algoritm: `sotto train` has no such option; did you mean --algorithm?"},
      {{"train", "--lr"}, "--lr: a value is missing; write --lr GAMMA"},
      {{"train", "--lr", "1", "--lr", "2"}, "--lr: it is given 2 times"},
      {{"train", "--lr", "much"}, "--lr: 'much' is no number"},
      {{"train", "--batch", "1.5"}, "--batch: '1.5' is no whole number"},
      {{"train", "--epochs", "1", "--rounds", "1"},
       "--epochs excludes --rounds: give one of the two"},
  };
  for (const Case& one : cases) {
    const auto ended = run(one.words);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err.starts_with("sotto: " + one.says.substr(0, one.says.find(' '))));
    CHECK(contains(ended.err, one.says));
    CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
  }
}

TEST_CASE("--json without a file is standard output") {
  CHECK(run({"list", "--json"}).json() == run({"list", "--json", "-"}).json());
  CHECK(run({"list", "--json", "--quiet"}).json().at("sotto") == SOTTO_VERSION);
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
    CHECK_FALSE(algorithm.at("memory_per_parameter").get<std::string>().empty());
    CHECK_FALSE(algorithm.at("bytes_per_round").get<std::string>().empty());
  }
  const auto table = run({"list"});
  CHECK(table.status == 0);
  CHECK(contains(table.out, "deepsqueeze"));
  CHECK(run({"list", "--quiet"}).out.empty());
}

TEST_CASE("the tensors of a model are listed") {
  const auto listed = run({"list", "--model", "mlp:8", "--json", "-"}).json().at("tensors");
  REQUIRE(listed.size() == 4);
  std::size_t elements = 0;
  for (const auto& tensor : listed) {
    elements += tensor.at("elements").get<std::size_t>();
  }
  CHECK(elements == 784 * 8 + 8 + 8 * 10 + 10);
  const auto shown = run({"list", "--model", "mlp:8"});
  CHECK(contains(shown.out, listed[0].at("name").get<std::string>()));
  CHECK(contains(shown.out, "6272"));
  CHECK_FALSE(contains(shown.out, "%"));
  CHECK(run({"list", "--model", "mpl:8"}).status == 2);
}

}  // namespace sotto::test::list_test
