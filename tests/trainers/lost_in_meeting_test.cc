// A process that dies while the others are past their last round: they are told at once.
#include <csignal>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/trainers/optimizer.h>

#include "comm/forked_process.h"
#include "support/scratch.h"
#include "trainers/nodes.h"

namespace sotto::test::lost_in_meeting_test {

using namespace std::chrono_literals;

namespace {

constexpr int kNodes = 3;

OptimizerOptions options_of(const std::string& transport, const Scratch& place, Rank rank) {
  auto options = options_for(kNodes, make_file_store(place.path().string()));
  options.transport = transport;
  options.timeout = 1h;
  options.rank = rank;
  return options;
}

Status steps(Optimizer& optimizer, Round rounds) {
  const std::vector<float> gradient(4, 0.5F);
  Status status;
  for (Round round = 0; round < rounds && status.ok(); ++round) {
    status = optimizer.begin_step();
    status = status.ok() ? optimizer.step(gradient) : status;
  }
  return status;
}

}  // namespace

TEST_CASE("a node that dies before it meets the others is missed at once, at all of them") {
  for (const std::string transport : {"gloo", "zmq"}) {
    if (!available(transport)) {
      continue;
    }
    for (const bool mean : {true, false}) {
      CAPTURE(transport);
      CAPTURE(mean);
      const Scratch place;
      const auto run = [&](Rank rank, const std::function<void()>& at_the_end) {
        std::vector<float> model(4);
        Optimizer optimizer(options_of(transport, place, rank), model);
        Status status = steps(optimizer, 3);
        at_the_end();
        if (status.ok()) {
          status = mean ? optimizer.finish_with_mean(model).status() : optimizer.finish();
        }
        return status;
      };
      const ForkedProcess dies([&] { (void)run(1, [] { ::raise(SIGKILL); }); });
      const ForkedProcess other([&] { (void)run(2, [] {}); });
      const Status status = run(0, [] {});
      CAPTURE(status.message());
      CHECK(status.fault() == Fault::peer_lost);
      CHECK(status.message().find("node 1 is lost") != std::string::npos);
    }
  }
}

}  // namespace sotto::test::lost_in_meeting_test
