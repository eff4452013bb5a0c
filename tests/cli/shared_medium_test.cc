// Media that nodes share, in scenario files.
#include <string>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"

namespace sotto::test::shared_medium_test {

namespace {

double seconds(const std::string& network, const std::string& run) {
  const Scratch scratch;
  const std::string text = "sotto-scenario = 1\nrun = [\"" + run +
                           "\"]\ntiming-only = true\n[nodes]\ncount = 4\ngradient = \"1 ns\"\n"
                           "[network]\n" +
                           network + "\n[task]\nmodel = \"softmax\"\nrounds = 10\n";
  return simulated(scratch, text).at("runs")[0].at("virtual_s").get<double>();
}

const std::string kFree = "link = { latency = \"0 ms\" }\n";

}  // namespace

TEST_CASE("a shared medium carries all that its nodes send and receive, one thing at a time") {
  const std::string ring = "dpsgd ring";
  // 4 nodes of 2 neighbours: 8 frames a round, each in and out of the air at 1 MB/s.
  const double all =
      seconds(kFree + "shared = [{ nodes = \"all\", bandwidth = \"1 MB/s\" }]", ring);
  // These frames by a way out of 1 MB/s of each node: 2 a round.
  const double own = seconds(kFree + "hosts = [{ nodes = \"all\", up = \"1 MB/s\" }]", ring);
  CHECK(all == doctest::Approx(8 * own).epsilon(1e-6));
  // Two media, of nodes 0, 1 and of 2, 3: 4 frames stay inside one, twice in its air, and 4 cross
  // from one to the other: of each medium 4 crossings within, and 4 between.
  const double two = seconds(kFree +
                                 "shared = [{ nodes = \"0, 1\", bandwidth = \"1 MB/s\" }, "
                                 "{ nodes = \"2, 3\", bandwidth = \"1 MB/s\" }]",
                             ring);
  CHECK(two == doctest::Approx(4 * own).epsilon(1e-6));
  // Only one node's frames, two out and two in.
  const double one = seconds(kFree + "shared = [{ nodes = \"2\", bandwidth = \"1 MB/s\" }]", ring);
  CHECK(one == doctest::Approx(2 * own).epsilon(1e-6));
  CHECK(seconds(kFree + "shared = [{ nodes = \"all\", bandwidth = \"2 MB/s\" }]", ring) ==
        doctest::Approx(all / 2).epsilon(1e-6));
}

TEST_CASE("a medium that makes no sense is refused with its place") {
  const Scratch scratch;
  const auto refusal = [&](const std::string& media) {
    const auto ended = simulate(scratch, scenario(kNodes, kNetwork + ", shared = " + media));
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK(contains(refusal("[{ nodes = \"0\" }]"), "bandwidth"));
  CHECK(contains(refusal("[{ bandwidth = \"1 MB/s\" }]"), "nodes"));
  CHECK(contains(refusal("[{ nodes = \"0, 1\", bandwidth = \"1 MB/s\" }, "
                         "{ nodes = \"1\", bandwidth = \"1 MB/s\" }]"),
                 "node 1 shares two media"));
  CHECK(contains(refusal("[{ nodes = \"0\", bandwidth = \"1 MB/s\", latency = \"1 ms\" }]"),
                 "latency"));
}

}  // namespace sotto::test::shared_medium_test
