// What a node of a simulation costs in memory, by the allocator's own count of bytes in use: the
// difference between two numbers of nodes, so that what all share does not count.
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/study/simulation/simulated_run.h>

namespace sotto::test::memory_test {

using namespace sotto::study;

namespace {

/// Bytes that are allocated now. Sanitizers have allocators of their own, of which this is 0.
double bytes_in_use() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

/// Notes the most bytes in use at the ends of rounds.
class Watch final : public Observer {
 public:
  explicit Watch(double& most) : most_(most) {}
  void round_done(Round /*done*/) override { most_ = std::max(most_, bytes_in_use()); }

 private:
  double& most_;
};

/// The most that a run of so many nodes has in use, without what was in use before.
double bytes_of(int nodes, const std::string& more) {
  const std::string text = fmt::format(
      "sotto-scenario = 1\nseed = 15\nrun = [\"dpsgd ring\"]\n{}\n"
      "[nodes]\ncount = {}\ngradient = \"lognormal:400 ms,0.5\"\n"
      "[network]\nlink = {{ latency = \"20 ms\", jitter = \"3 ms\" }}\n"
      "hosts = [{{ nodes = \"all\", up = \"10 Mbit/s\", down = \"50 Mbit/s\" }}]\n"
      "[task]\ntask = \"digits,train=600,test=60\"\nmodel = \"mlp:16\"\nrounds = 3\n",
      more, nodes);
  const Scenario scenario = parse_scenario("text", text);
  const double before = bytes_in_use();
  double most = 0;
  SimulationRequest request;
  request.observer = [&most](Round) { return std::make_unique<Watch>(most); };
  (void)simulate_run(scenario, scenario.runs[0], request);
  return most - before;
}

/// Bytes of one node more.
double bytes_a_node(int nodes, const std::string& more) {
  (void)bytes_of(nodes, more);  // what is kept once for all runs is there from now on
  return (bytes_of(2 * nodes, more) - bytes_of(nodes, more)) / nodes;
}

}  // namespace

TEST_CASE("a node of timing only takes little more than two kilobytes") {
  const double bytes = bytes_a_node(5'000, "timing-only = true");
  MESSAGE("bytes a node: " << bytes);
  CHECK(bytes < 2'150);
}

TEST_CASE("a node with gradients takes a few vectors of its model") {
  constexpr double kModelBytes = 4 * (784 * 16 + 16 + 16 * 10 + 10);
  const double models = bytes_a_node(60, "") / kModelBytes;
  MESSAGE("models a node: " << models);
  CHECK(models < 4);
}

}  // namespace sotto::test::memory_test
