// What nodes do with their models outside the rounds, and how their run ends, without any rounds.
#include "../../../trainers/internal/optimizer/model_meetings.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/comm/session.h>
#include <sotto/trainers/placed_model.h>

#include "../../../trainers/internal/agreement/run_agreement.h"
#include "../../../trainers/internal/optimizer/run_outcome.h"
#include "../../../trainers/internal/reporting/run_reporter.h"
#include "trainers/nodes.h"

namespace sotto::test::model_meetings_test {

using namespace sotto::internal;

namespace {

constexpr int kNodes = 3;

OptimizerOptions options_of_node(Rank rank, const std::shared_ptr<Store>& store,
                                 Join join = Join::none) {
  OptimizerOptions options = options_for(kNodes, store);
  options.rank = rank;
  options.join = join;
  options.timeout = std::chrono::seconds(20);
  return options;
}

/// A node that has no rounds but those that it counts.
struct Node {
  Node(const OptimizerOptions& options, std::span<float> parameters)
      : session(make_session(options.store, options.rank, options.nodes, options.timeout)),
        agreement(*session, options),
        reporter(options, *session, CompressionWatch(1)),
        outcome(agreement, reporter, options.rank),
        model(parameters, nullptr),
        meetings(options, model, agreement, outcome,
                 {.connect = [this] { return connect(); },
                  .drain = [this] { return outcome.status(); },
                  .step = [this](std::span<const float> gradient) { return step(gradient); },
                  .done = [this] { return done; }}) {}

  Status connect() {
    const bool first = !agreement.entered();
    return first ? outcome.ended_by(agreement.agree([]() -> Result<StartingPoint> {
      return StartingPoint{"settings", 0, "model"};
    }))
                 : outcome.status();
  }
  Status step(std::span<const float> gradient) {
    Status status = agreement.begin_round(done);
    if (status.ok()) {
      status = agreement.enter_round(done);
    }
    if (!status.ok()) {
      return status;
    }
    ++done;
    for (const float value : gradient) {
      sum += value;
    }
    elements += gradient.size();
    return {};
  }

  Round done = 0;
  float sum = 0;             // of all gradients
  std::size_t elements = 0;  // in all gradients
  std::shared_ptr<Session> session;
  RunAgreement agreement;
  RunReporter reporter;
  RunOutcome outcome;
  WholeModel model;
  ModelMeetings meetings;
};

/// Runs `node` for every rank at once, on models of {rank, 4}; their statuses in rank order.
std::vector<Status> with_nodes(const std::shared_ptr<Store>& store, Join join,
                               const std::function<Status(Rank, Node&)>& act) {
  return play(kNodes, [&](Rank rank) {
    std::vector<float> x = {static_cast<float>(rank), 4};
    Node node(options_of_node(rank, store, join), x);
    return act(rank, node);
  });
}

void check_ok(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
}

}  // namespace

TEST_CASE(
    "model meetings: the mean with what goes along, and its distance after that round alone") {
  check_ok(with_nodes(make_memory_store(), Join::none, [](Rank rank, Node& node) -> Status {
    const std::vector<float> carried = {10 * static_cast<float>(rank)};
    node.model.carry(carried);
    std::vector<float> mean(3);
    for (node.done = 4; node.done < 6; ++node.done) {
      const auto distance = node.meetings.mean(mean);
      if (!distance.ok()) {
        return distance.status();
      }
      CHECK(mean == std::vector<float>{1, 4, 10});
      CHECK(*distance == doctest::Approx(2.0 / 3));  // of the parameters alone
      CHECK(node.meetings.distance(node.done) == *distance);
      CHECK_FALSE(node.meetings.distance(node.done + 1).has_value());
    }
    std::vector<float> other(2);
    CHECK_THROWS_WITH_AS(node.meetings.mean(other), doctest::Contains("mean"), Error);
    CHECK_THROWS_WITH_AS(node.meetings.mean({}), doctest::Contains("mean"), Error);
    CHECK_THROWS_WITH_AS(node.meetings.come_to_end(other), doctest::Contains("mean"), Error);
    return {};
  }));
}

TEST_CASE("model meetings: nothing that was met for stays behind") {
  const auto store = make_memory_store();
  check_ok(with_nodes(store, Join::none, [](Rank rank, Node& node) -> Status {
    std::vector<float> mean(2);
    if (const auto met = node.meetings.come_to_end(mean); !met.ok()) {
      return met.status();
    }
    if (Status status = node.agreement.end(); !status.ok()) {
      return status;
    }
    node.meetings.clean_up();
    const bool there = node.session->get("mean/0/model", Deadline::after({})).ok();
    CHECK((rank != 0 || !there));
    return {};
  }));
}

TEST_CASE("model meetings: tensors that lie at one node each are brought to all, and removed") {
  const auto placed = std::make_shared<PlacedModel>();
  for (std::size_t at = 0; at < kNodes; ++at) {
    placed->own.push_back({{.offset = at, .size = 1}});
  }
  const auto store = make_memory_store();
  check_ok(play(kNodes, [&](Rank rank) -> Status {
    OptimizerOptions options = options_of_node(rank, store);
    options.placed = placed;
    std::vector<float> x(kNodes, static_cast<float>(rank) + 1);
    Node node(options, x);
    const auto there = [&](std::string_view key) {
      return node.session->get(key, Deadline::after({})).ok();
    };
    std::vector<float> values(2, 5);
    Status status = node.meetings.take_from_node_0(values);
    std::vector<float> mean(kNodes);
    status = status.ok() ? node.meetings.mean(mean).status() : status;
    status = status.ok() ? node.meetings.come_to_end(mean).status() : status;
    CHECK(x == std::vector<float>{1, 2, 3});
    status = status.ok() ? node.agreement.end() : status;
    if (status.ok() && rank == 0) {
      CHECK(there("own/1/together"));
      CHECK(there("given/0/values"));
    }
    node.meetings.clean_up();
    if (rank == 0) {
      CHECK_FALSE(there("own/0/together"));
      CHECK_FALSE(there("own/1/together"));
      CHECK_FALSE(there("given/0/values"));
      CHECK_FALSE(there("mean/1/model"));
    }
    return status;
  }));
}

TEST_CASE("model meetings: a node that is out of data steps with zeros until all nodes are") {
  std::atomic<Round> rounds_with_zeros{0};
  check_ok(with_nodes(make_memory_store(), Join::zeros, [&](Rank rank, Node& node) -> Status {
    if (Status status = node.connect(); !status.ok()) {
      return status;
    }
    const Round with_data = 1 + static_cast<Round>(rank);
    while (node.done < with_data) {
      if (Status status = node.step({}); !status.ok()) {
        return status;
      }
    }
    std::vector<float> mean(2);
    const auto met = node.meetings.come_to_end(mean);
    CHECK(node.done == kNodes);
    CHECK(node.sum == 0);
    CHECK(node.elements == 2 * (kNodes - with_data));
    CHECK(mean == std::vector<float>{1, 4});
    rounds_with_zeros += node.done - with_data;
    return met.status();
  }));
  CHECK(rounds_with_zeros == 2 + 1);
}

TEST_CASE("model meetings: node 0's values, and a fault of them ends the run") {
  check_ok(with_nodes(make_memory_store(), Join::none, [](Rank rank, Node& node) -> Status {
    std::vector<float> values(3, static_cast<float>(rank + 7));
    Status status = node.meetings.take_from_node_0(values);
    CHECK(values == std::vector<float>(3, 7));
    return status;
  }));
  const auto statuses =
      with_nodes(make_memory_store(), Join::none, [](Rank rank, Node& node) -> Status {
        std::vector<float> values(rank == 2 ? 2 : 3);
        Status status = node.meetings.take_from_node_0(values);
        CHECK(node.outcome.status().message() == status.message());
        std::vector<float> mean(2);
        return status.ok() && rank == 0 ? Status() : node.meetings.come_to_end(mean).status();
      });
  CHECK(statuses[2].fault() == Fault::malformed);
  CHECK(statuses[2].message() == "node 2: node 0 gives another number of values");
  CHECK(statuses[1].message() == statuses[2].message());
}

TEST_CASE("run outcome: the first fault stands, all are told it, and an OK ends nothing") {
  const auto statuses =
      with_nodes(make_memory_store(), Join::none, [](Rank rank, Node& node) -> Status {
        CHECK(node.outcome.ended_by({}).ok());
        CHECK(node.outcome.give_up({}).ok());
        if (Status status = node.connect(); !status.ok()) {
          return status;
        }
        if (rank == 1) {
          CHECK(node.outcome.give_up({Fault::io, "no disk"}).message() == "node 1: no disk");
          CHECK(node.outcome.ended_by({Fault::malformed, "later"}).fault() == Fault::io);
        } else {
          std::vector<float> mean(2);
          (void)node.meetings.mean(mean);
        }
        CHECK_FALSE(node.outcome.finished());
        return node.outcome.status();
      });
  for (const Status& status : statuses) {
    CHECK(status.message() == "node 1: no disk");
  }
}

TEST_CASE("run outcome: a node that leaves says why only where something is left to say") {
  enum class End { refused, taken, finished, thrown, stopped };
  for (const End end : {End::refused, End::taken, End::finished, End::thrown, End::stopped}) {
    CAPTURE(static_cast<int>(end));
    const auto said = std::make_shared<std::string>();
    check_ok(with_nodes(make_memory_store(), Join::none, [&](Rank rank, Node& node) -> Status {
      if (Status status = node.connect(); !status.ok()) {
        return status;
      }
      if (rank == 1) {
        CHECK_FALSE(node.outcome.keep_open({Fault::io, "no refusal"}));
        CHECK((end == End::stopped || end == End::thrown ||
               node.outcome.keep_open({Fault::non_finite, "a NaN"})));
        if (end == End::taken) {
          node.outcome.gradient_taken();
        } else if (end == End::finished) {
          node.outcome.finish();
        }
        struct Leaves {
          ~Leaves() { outcome.leave(); }
          RunOutcome& outcome;
        };
        try {
          const Leaves leaves{node.outcome};
          if (end == End::thrown) {
            throw std::runtime_error("the program's");
          }
        } catch (const std::runtime_error&) {
          CHECK(end == End::thrown);
        }
      }
      Status status = node.agreement.collectives().barrier("left");
      const bool tells = end == End::refused || end == End::thrown;
      const std::string cause = node.agreement.given_up().message();
      CHECK(cause == (end == End::refused  ? "a NaN"
                      : end == End::thrown ? "node 1: an exception ended the program"
                                           : ""));
      return tells ? Status() : status;
    }));
  }
}

}  // namespace sotto::test::model_meetings_test
