// Why a run has ended: every node says it, and not only that its neighbour is gone.
#include <sotto/trainers/optimizer.h>

#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/free_port.h"
#include "support/skip.h"
#include "trainers/nodes.h"

namespace sotto::test::cause_test {

namespace {

constexpr int kNodes = 6;  // a ring, in which two nodes are three links away from each other
constexpr Rank kCulprit = 3;
constexpr std::size_t kDimension = 40;

/// Steps for ever, but for the culprit, which does `last` in round 5.
Status endless(OptimizerOptions options, Rank rank, const std::function<Status(Optimizer&)>& last) {
  options.rank = rank;
  std::vector<float> x(kDimension);
  Optimizer optimizer(options, x);
  std::vector<float> gradient(kDimension, 0.5F);
  while (true) {
    if (rank == kCulprit && optimizer.round() == 5) {
      return last(optimizer);
    }
    if (Status status = optimizer.step(gradient); !status.ok()) {
      const Status again = optimizer.step(gradient);
      CHECK(again.message() == status.message());
      return status;
    }
  }
}

void check_causes(const OptimizerOptions& options, const std::string& cause, Fault fault,
                  const std::function<Status(Optimizer&)>& last) {
  const auto statuses = play(kNodes, [&](Rank rank) { return endless(options, rank, last); });
  for (Rank rank = 0; rank < kNodes; ++rank) {
    const Status& status = statuses[static_cast<std::size_t>(rank)];
    // Another node's gradient leaves nothing open here.
    CHECK(status.fault() ==
          (rank != kCulprit && fault == Fault::non_finite ? Fault::peer_lost : fault));
    CHECK_MESSAGE(status.message().starts_with(cause), status.message());
    CHECK_MESSAGE(status.message().find("node", 4) == std::string::npos, status.message());
  }
}

}  // namespace

TEST_CASE("all nodes end with the words of the one that gave up") {
  check_causes(options_for(kNodes, make_memory_store()), "node 3: the disk is full", Fault::io,
               [](Optimizer& optimizer) {
                 const Status given = optimizer.give_up({Fault::io, "the disk is full"});
                 CHECK(optimizer.give_up({Fault::io, "again"}).message() == given.message());
                 return given;
               });
}

TEST_CASE("a gradient that was no number, and no other after it, is why all nodes end") {
  const auto wild = [](Optimizer& optimizer) {
    const std::vector<float> gradient(kDimension, std::numeric_limits<float>::quiet_NaN());
    return optimizer.step(gradient);
  };
  check_causes(options_for(kNodes, make_memory_store()), "node 3", Fault::non_finite, wild);
  if (!available("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  auto options = options_for(kNodes, nullptr);
  options.transport = "zmq";
  options.rendezvous = "tcp://127.0.0.1:" + std::to_string(free_port());
  check_causes(options, "node 3", Fault::non_finite, wild);
}

TEST_CASE("a gradient that was refused, and then another one, ends nothing") {
  const auto options = options_for(kNodes, make_memory_store());
  const auto statuses = play(kNodes, [&](Rank rank) {
    auto mine = options;
    mine.rank = rank;
    std::vector<float> x(kDimension);
    Optimizer optimizer(mine, x);
    const std::vector<float> gradient(kDimension, 0.5F);
    const std::vector<float> wild(kDimension, std::numeric_limits<float>::infinity());
    for (int round = 0; round < 10; ++round) {
      if (rank == kCulprit) {
        CHECK(optimizer.step(wild).fault() == Fault::non_finite);
      }
      if (Status status = optimizer.step(gradient); !status.ok()) {
        return status;
      }
    }
    return optimizer.finish();
  });
  for (const Status& status : statuses) {
    CAPTURE(status.message());
    CHECK(status.ok());
  }
}

TEST_CASE("of a node that leaves without a word all learn whom its neighbours miss") {
  const auto options = options_for(kNodes, make_memory_store());
  const auto statuses = play(kNodes, [&](Rank rank) {
    return endless(options, rank, [](Optimizer&) { return Status(Fault::io, "silent"); });
  });
  for (Rank rank = 0; rank < kNodes; ++rank) {
    const Status& status = statuses[static_cast<std::size_t>(rank)];
    if (rank != kCulprit) {
      CHECK(status.fault() == Fault::peer_lost);
      CHECK_MESSAGE(status.message().find("node 3 is lost") != std::string::npos, status.message());
    }
  }
}

TEST_CASE("a run that ended well stays so, whatever was refused in it") {
  const auto store = make_memory_store();
  const auto statuses = play(2, [&](Rank rank) {
    auto mine = options_for(2, store);
    mine.rank = rank;
    std::vector<float> x(kDimension);
    Optimizer optimizer(mine, x);
    const std::vector<float> gradient(kDimension, 0.5F);
    const std::vector<float> wild(kDimension, std::numeric_limits<float>::infinity());
    if (Status status = optimizer.step(gradient); !status.ok()) {
      return status;
    }
    CHECK(optimizer.step(wild).fault() == Fault::non_finite);
    Status status = optimizer.finish();
    CHECK(optimizer.give_up({Fault::io, "too late"}).ok());
    return status;
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
}

TEST_CASE("a store that is gone costs whoever gives up a moment, and no more") {
  /// Answers nothing once it is gone, as a server does that is.
  class Leaving final : public Store {
   public:
    Status set(std::string_view key, std::span<const std::byte> value) override {
      CHECK_MESSAGE(!gone, "whoever knows that the store is gone sets nothing: ", std::string(key));
      return inner_->set(key, value);
    }
    Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
      if (gone) {
        return Status(Fault::io, "no answer");
      }
      return inner_->get(key, deadline);
    }
    Status remove(std::string_view key) override { return inner_->remove(key); }
    std::atomic<bool> gone = false;

   private:
    std::shared_ptr<Store> inner_ = make_memory_store();
  };
  const auto store = std::make_shared<Leaving>();
  auto options = options_for(1, store);
  options.transport = available("zmq") ? "zmq" : "gloo";
  std::vector<float> x(kDimension);
  Optimizer optimizer(options, x);
  REQUIRE(optimizer.step(std::vector<float>(kDimension, 0.5F)).ok());
  store->gone = true;
  CHECK(optimizer.give_up({Fault::io, "enough"}).message() == "node 0: enough");
  CHECK(optimizer.step(std::vector<float>(kDimension, 0.5F)).message() == "node 0: enough");
}

}  // namespace sotto::test::cause_test
