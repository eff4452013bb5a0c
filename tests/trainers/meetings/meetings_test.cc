#include <sotto/trainers/meetings/model_average.h>
#include <sotto/trainers/meetings/store_collectives.h>

#include <string>

#include <doctest/doctest.h>

#include <sotto/comm/run_keys.h>
#include <sotto/comm/session.h>

#include "support/scratch.h"
#include "trainers/nodes.h"

namespace sotto::test::meetings_test {

using namespace std::chrono_literals;

namespace {

constexpr int kNodes = 3;
constexpr float kModel[] = {1, 2};

Status meet(Store& store, Rank rank, std::chrono::milliseconds timeout,
            const ModelAverage::Inspect& inspect) {
  StoreCollectives collectives(store, rank, kNodes, timeout);
  return ModelAverage(collectives).meet(4, kModel, 10, inspect);
}

}  // namespace

TEST_CASE("a look at the models that outlasts every deadline kills no healthy run") {
  const auto store = make_memory_store();
  constexpr auto kTimeout = 500ms;
  const auto statuses = play(kNodes, [&](Rank rank) {
    return meet(*store, rank, kTimeout, [&](const AveragedModel& model) {
      CHECK(model.bytes_per_node == 10);
      (void)store->get("nothing", Deadline::after(4 * kTimeout));
    });
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
  CHECK_FALSE(store->get("model/4/pulse", Deadline::after(0s)).ok());
}

TEST_CASE("models count in the mean as their nodes' gradients do") {
  const auto store = make_memory_store();
  const auto statuses = play(kNodes, [&](Rank rank) {
    StoreCollectives collectives(*store, rank, kNodes, 10s);
    ModelAverage average(collectives);
    if (rank > 0) {
      average.weigh(rank == 1 ? 2.5 : 0.5);
    }
    const std::vector<float> model = {static_cast<float>(rank), 4};
    return average.meet(1, model, 0, [](const AveragedModel& all) {
      CHECK(all.parameters == std::vector<float>{(2.5F * 1 + 0.5F * 2) / 4, 4});
    });
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
  const Status bad = [&] {
    ByteBuffer value;
    value.write(std::uint64_t{0});
    value.write(-1.0);
    value.write_span(std::span<const float>(kModel));
    REQUIRE(store->set("model/7/1", value.bytes()).ok());
    StoreCollectives collectives(*store, 0, kNodes, 1s);
    return ModelAverage(collectives).meet(7, kModel, 0, nullptr);
  }();
  CHECK(bad.message().find("node 1 counts its model by -1") != std::string::npos);
}

TEST_CASE("a node 0 that dies while it looks at the models is noticed") {
  const auto store = make_memory_store();
  // The node's last sign of life.
  REQUIRE(store->set("model/4/pulse", std::as_bytes(std::span(kModel))).ok());
  const Status status = meet(*store, 1, 50ms, nullptr);
  CHECK(status.fault() == Fault::deadline);
  CHECK(status.message().starts_with("node 1: waiting for node 0"));
}

TEST_CASE("a node that does not come is named, and one that gives up ends all waits") {
  const auto store = make_memory_store();
  const Status late = StoreCollectives(*store, 0, kNodes, 50ms).barrier("here");
  CHECK(late.fault() == Fault::deadline);
  CHECK(late.message().starts_with("node 0: waiting for node 1"));
  CHECK(late.message().ends_with("(the timeout is 0.05 s)"));

  const Status cause(Fault::non_finite, "node 2: a NaN\x1B");
  const auto statuses = play(kNodes, [&](Rank rank) -> Status {
    StoreCollectives collectives(*store, rank, kNodes, 1h);
    if (rank == 2) {
      collectives.fault_notice().give_up(cause);
      return cause;
    }
    return rank == 0 ? collectives.barrier("there") : collectives.await("nothing", 2).status();
  });
  for (const Rank rank : {0, 1}) {
    CHECK(statuses[static_cast<std::size_t>(rank)].fault() == Fault::non_finite);
    CHECK(statuses[static_cast<std::size_t>(rank)].message() == "node 2: a NaN\\x1b");
  }
}

TEST_CASE("nodes tell each other by fixed numbers why they give up, and take no other reason") {
  constexpr Fault kReasons[] = {Fault::malformed, Fault::unexpected, Fault::non_finite,
                                Fault::peer_lost, Fault::deadline,   Fault::io,
                                Fault::budget};
  for (int number = 0; number <= 255; ++number) {
    CAPTURE(number);
    ByteBuffer value;
    value.write(static_cast<std::uint8_t>(number));
    value.write_string("node 0: why");
    const auto store = make_memory_store();
    REQUIRE(store->set(given_up_key(), value.bytes()).ok());
    const Status cause = FaultNotice(*store, 1).given_up();
    const bool known = number >= 1 && number <= static_cast<int>(std::size(kReasons));
    CHECK(cause.fault() == (known ? kReasons[number - 1] : Fault::malformed));
    CHECK((cause.message() == "node 0: why") == known);
  }
}

TEST_CASE("a reason that cannot be read is told as such") {
  for (const std::string& value : {std::string(), std::string(1, '\0'), std::string(1, '\x7F'),
                                   std::string(5, '\1'), std::string("\2\0\0\0\0x", 6)}) {
    const auto store = make_memory_store();
    REQUIRE(store->set("given-up/any", std::as_bytes(std::span(value))).ok());
    CHECK(FaultNotice(*store, 1).given_up().fault() == Fault::malformed);
  }
}

TEST_CASE(
    "who only watches a store sees a session's nodes begin, by the public names of its keys") {
  const auto store = make_memory_store();
  const auto begun = [&] {
    const auto session = store->get(kSessionKey, Deadline::after(10s));
    REQUIRE(session.ok());
    const auto mark = session_mark(*session);
    REQUIRE(mark);
    return store->get(key_in_session(*mark, barrier_key(kBeginBarrier)), Deadline::after(0s)).ok();
  };
  const auto statuses = play(kNodes, [&](Rank rank) {
    const auto session = make_session(store, rank, kNodes, 1h);
    StoreCollectives collectives(*session, rank, kNodes, 1h);
    Status met = collectives.barrier("before");
    if (rank == 2) {
      CHECK_FALSE(begun());  // the others may wait there, but not all have come
    }
    return met.ok() ? collectives.barrier(kBeginBarrier) : met;
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
  CHECK(begun());
  CHECK_FALSE(session_mark(std::as_bytes(std::span(kModel, 1))));
}

}  // namespace sotto::test::meetings_test
