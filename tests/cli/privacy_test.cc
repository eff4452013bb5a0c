// Differential privacy from the command line.
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"

namespace sotto::test::privacy_test {

namespace {

const Arguments kSmall = {"train",   "--task",   "digits,train=400,test=200",
                          "--model", "softmax",  "--nodes",
                          "4",       "--rounds", "20",
                          "--json",  "-",        "--quiet"};

Arguments with(Arguments more) {
  Arguments all = kSmall;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("digits are learned under a budget of epsilon 8, which the noise is chosen for") {
  const auto result = run({"train",   "--nodes",
                           "2",       "--model",
                           "softmax", "--batch",
                           "64",      "--rounds",
                           "120",     "--lr",
                           "1",       "--clip-norm",
                           "1",       "--privacy-epsilon",
                           "8",       "--privacy-seed",
                           "1",       "--json",
                           "-",       "--quiet"})
                          .json();
  CHECK(result.at("rounds") == 120);
  const auto& privacy = result.at("privacy");
  CHECK(privacy.at("epsilon").get<double>() <= 8);
  CHECK(privacy.at("epsilon").get<double>() > 7.99);
  CHECK(privacy.at("delta") == 1e-5);
  CHECK(privacy.at("steps") == 120);
  CHECK(privacy.at("steps_left") == 0);
  const auto& used = result.at("config").at("privacy");
  CHECK(used.at("unit") == "example");
  CHECK(used.at("noise_multiplier").get<double>() > 0.4);
  CHECK(result.at("final").at("accuracy").get<double>() > 0.75);
}

TEST_CASE("the budget ends a run at the accountant's step, over threads and processes alike") {
  const Arguments hidden = with({"--clip-norm", "1", "--noise-multiplier", "2", "--privacy-unit",
                                 "update", "--privacy-epsilon", "6", "--privacy-seed", "3"});
  const Ended threads = run(hidden);
  const auto result = threads.json();
  CHECK(threads.err.find("NOTHING IS HIDDEN") == std::string::npos);  // --quiet
  const auto steps = result.at("privacy").at("steps").get<int>();
  CHECK(steps > 0);
  CHECK(steps < 20);
  CHECK(result.at("rounds") == steps);
  CHECK(result.at("privacy").at("steps_left") == 0);
  CHECK(result.at("privacy").at("epsilon").get<double>() <= 6);
  Arguments processes = hidden;
  processes.insert(processes.end(), {"--transport", "zmq"});
  const Ended ended = run(processes);
  if (ended.status == 0) {  // a build without ZeroMQ refuses
    CHECK(ended.json().at("parameters_sha256") == result.at("parameters_sha256"));
  }
}

TEST_CASE(
    "a test seed gives one result over threads and in the simulator, and without, none is equal") {
  const Arguments hidden = {"--clip-norm", "1", "--noise-multiplier", "1"};
  Arguments seeded = with(hidden);
  seeded.insert(seeded.end(), {"--privacy-seed", "3"});
  const auto real = run(seeded).json();
  CHECK(run(seeded).json().at("parameters_sha256") == real.at("parameters_sha256"));

  const Scratch scratch;
  const auto file = scratch.write(
      "s.toml",
      "sotto-scenario = 1\nrun = [\"dcd\"]\nnodes = { count = 4, gradient = \"10 ms\" }\n"
      "network = { link = \"wan\" }\ntask = { task = \"digits,train=400,test=200\", model = "
      "\"softmax\", rounds = 20, clip-norm = 1.0, noise-multiplier = 1.0, privacy-seed = 3 }\n");
  const auto simulated = run({"simulate", file.string(), "--json", "-"}).json();
  CHECK(simulated.at("runs")[0].at("parameters_sha256") == real.at("parameters_sha256"));

  CHECK(run(with(hidden)).json().at("parameters_sha256") != real.at("parameters_sha256"));
}

TEST_CASE("a simulation hides nothing: its noise is the scenario's seed's, and repeats itself") {
  const Scratch scratch;
  const auto file = scratch.write(
      "s.toml",
      "sotto-scenario = 1\nrun = [\"dpsgd\"]\nnodes = { count = 4, gradient = \"10 ms\" }\n"
      "network = { link = \"wan\" }\ntask = { task = \"digits,train=400,test=200\", model = "
      "\"softmax\", rounds = 5, clip-norm = 1.0, noise-multiplier = 1.0 }\n");
  const auto digests = [&](const std::string& seed) {
    const auto ended = run({"simulate", file.string(), "--json", "-", "--seed", seed});
    CHECK_FALSE(contains(ended.err, "NOTHING IS HIDDEN"));
    return ended.json().at("runs")[0].at("parameters_sha256");
  };
  CHECK(digests("1") == digests("1"));
  CHECK(digests("1") != digests("2"));
}

TEST_CASE("privacy that would be none is refused, and said what would do") {
  const auto refused = [](const Arguments& more, const std::string& why) {
    const Ended ended = run(with(more));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(ended.err.find(why) != std::string::npos);
  };
  refused({"--noise-multiplier", "1"}, "give --clip-norm too");
  refused({"--privacy-epsilon", "8"}, "give --clip-norm too");
  refused({"--privacy-delta", "1e-5"}, "nothing is hidden without");
  refused({"--privacy-unit", "update"}, "nothing is hidden without");
  refused({"--clip-norm", "0", "--noise-multiplier", "1"}, "--clip-norm: '0'");
  refused({"--clip-norm", "1", "--noise-multiplier", "0"}, "--noise-multiplier: '0'");
  refused({"--clip-norm", "1", "--noise-multiplier", "1", "--privacy-epsilon", "0.01"},
          "one step alone costs");
  refused({"--clip-norm", "1", "--noise-multiplier", "1", "--privacy-delta", "1"},
          "--privacy-delta: '1'");
  refused({"--clip-norm", "1", "--noise-multiplier", "1", "--privacy-unit", "user"},
          "--privacy-unit: 'user'");
}

TEST_CASE("a private run says what it told, and warns when it hides nothing") {
  const Ended ended =
      run({"train", "--task", "digits,train=400,test=200", "--model", "softmax", "--nodes", "4",
           "--rounds", "20", "--clip-norm", "1", "--noise-multiplier", "1", "--privacy-seed", "3",
           "--privacy-delta", "0.02"});
  CHECK(ended.status == 0);
  CHECK(ended.out.find("privacy: epsilon ") != std::string::npos);
  CHECK(ended.err.find("NOTHING IS HIDDEN") != std::string::npos);
  CHECK(ended.err.find("delta should lie well below") != std::string::npos);
}

}  // namespace sotto::test::privacy_test
