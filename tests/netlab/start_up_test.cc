// What jobs of local nodes hold, as the system sees it.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/comm/transport.h>

#include "bench/support/running_job.h"
#include "support/skip.h"

namespace sotto::test::start_up_test {

TEST_CASE("a node's connections are as many as its neighbours, not as the nodes") {
  constexpr int kNodes = 16;
  struct Graph {
    const char* name;
    int neighbours;  ///< whom a node sends to or hears in any round
  };
  bool any = false;
  for (const std::string transport : {"gloo", "zmq"}) {
    if (!transport_info(transport).available) {
      continue;
    }
    any = true;
    // Over ZeroMQ each of two nodes connects to the other.
    const int each = transport == "gloo" ? 1 : 2;
    for (const Graph& graph : {Graph{"ring", 2}, Graph{"one-peer-exponential", 7}}) {
      CAPTURE(transport);
      CAPTURE(graph.name);
      bench::RunningJob job({SOTTO_PROGRAM, "train", "--local", "--task", "digits", "--transport",
                             transport, "--topology", graph.name, "--nodes", fmt::to_string(kNodes),
                             "--algorithm", "dpsgd", "--rounds", "1000000000", "--eval-every",
                             "1"});
      // Titles and an evaluation, for which every node has exchanged.
      job.wait_for_lines(2, Deadline::after(std::chrono::minutes(2)));
      const auto nodes = job.nodes();
      REQUIRE(nodes.size() == kNodes);
      for (const pid_t node : nodes) {
        CHECK(bench::connections_of(node) > 0);
        CHECK(bench::connections_of(node) <= each * graph.neighbours);
      }
    }
  }
  if (!any) {
    SOTTO_SKIP("no transport for several processes is built");
  }
}

}  // namespace sotto::test::start_up_test
