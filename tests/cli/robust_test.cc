// Byzantine nodes and robust rules from the program, over threads and over sockets.
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"

namespace sotto::test::robust_test {

namespace {

Arguments attacked(const std::string& rule, const std::string& attack) {
  return {"train",
          "--task",
          "digits,train=600,test=200",
          "--nodes",
          "6",
          "--topology",
          "complete",
          "--rounds",
          "60",
          "--algorithm",
          "robust",
          "--rule",
          rule,
          "--byzantine",
          "4-5",
          "--attack",
          attack,
          "--quiet",
          "--json",
          "-"};
}

double accuracy(const std::string& rule, const std::string& attack) {
  const auto ended = run(attacked(rule, attack));
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  return ended.json().at("final").at("accuracy").get<double>();
}

}  // namespace

TEST_CASE("honest nodes learn beside liars with clipped:auto, and not with the mean") {
  for (const std::string attack : {"sign-flip", "noise:10", "label-flip", "ipm:0.5"}) {
    CAPTURE(attack);
    CHECK(accuracy("clipped:auto", attack) > 0.6);
  }
  CHECK(accuracy("mean", "sign-flip") < 0.4);
}

TEST_CASE("liars lie alike over threads and over ZeroMQ") {
  auto sockets = attacked("clipped:auto", "dissensus");
  sockets.insert(sockets.end(), {"--transport", "zmq"});
  const auto threads = run(attacked("clipped:auto", "dissensus")).json();
  CHECK(run(sockets).json().at("parameters_sha256") == threads.at("parameters_sha256"));
  CHECK(threads.at("config").at("rule") == "clipped:auto");
  CHECK(threads.at("config").at("attack") == "dissensus:1.5");
  CHECK(threads.at("counters").at("set_aside").get<int>() > 0);
}

TEST_CASE("rules and attacks are refused where they do not belong") {
  struct Case {
    Arguments words;
    std::string says;
  };
  const Case cases[] = {
      {{"--algorithm", "dpsgd", "--rule", "median"}, "--rule: 'median' is refused: dpsgd has none"},
      {{"--algorithm", "pushsum", "--topology", "exponential", "--rule", "median"},
       "on directed graphs none is proven"},
      {{"--algorithm", "robust", "--topology", "exponential"},
       "on directed graphs no rule is proven"},
      {{"--algorithm", "robust", "--rule", "median:3"},
       "--rule: 'median:3' is refused: there are clipped"},
      {{"--algorithm", "robust", "--attack", "sign-flip"}, "--attack: 'sign-flip'"},
      {{"--algorithm", "robust", "--byzantine", "1"}, "--byzantine: '1'"},
      {{"--algorithm", "robust", "--byzantine", "all", "--attack", "alie"}, "--byzantine: 'all'"},
      {{"--algorithm", "dpsgd", "--byzantine", "1", "--attack", "alie"}, "made for robust"},
      {{"--algorithm", "robust", "--byzantine", "1", "--attack", "flip"}, "--attack: 'flip'"},
  };
  for (const Case& one : cases) {
    Arguments words = {"train"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    const auto ended = run(words);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, one.says));
  }
}

}  // namespace sotto::test::robust_test
