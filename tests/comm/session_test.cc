// What keeps the runs that use one store apart.
#include <sotto/comm/session.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/comm/stores.h>

#include "nodes.h"
#include "support/scratch.h"

namespace sotto::test::session_test {

using namespace std::chrono_literals;

namespace {

constexpr int kNodes = 4;

namespace fs = std::filesystem;

std::vector<std::byte> number(std::uint64_t value) {
  ByteBuffer out;
  out.write(value);
  return std::move(out).take();
}

/// What begins the keys under a mark.
std::string mark_text(std::span<const std::byte> mark) {
  ByteReader in(mark);
  return fmt::format("{:016x}", in.read<std::uint64_t>());
}

std::vector<std::byte> byte(int value) { return {static_cast<std::byte>(value)}; }

/// What a process writes under claim/RANK that runs where nobody here can see it.
std::vector<std::byte> record_from_elsewhere(std::uint64_t beat) {
  ByteBuffer out;
  for (const std::uint64_t value : {std::uint64_t{99}, beat, std::uint64_t{1}, std::uint64_t{2}}) {
    out.write(value);
  }
  out.write_string("another kernel");
  out.write_string("far-away");
  return std::move(out).take();
}

std::vector<std::byte> list_of(std::string_view key) {
  ByteBuffer out;
  out.write_string(key);
  return std::move(out).take();
}

/// Leaves what a node 0 elsewhere has in the store while its run trains.
void begin_elsewhere(Store& store) {
  REQUIRE(store.set("claim/0", record_from_elsewhere(1)).ok());
  REQUIRE(store.set("session", number(5)).ok());
  REQUIRE(store.set("0000000000000005/go", {}).ok());
  REQUIRE(store.set("left/0", list_of("0000000000000005/go")).ok());
}

/// What else happens at a store, with the key of the call.
struct StoreEvents {
  std::function<void(std::string_view)> before_set = [](std::string_view) {};
  std::function<void(std::string_view)> after_set = [](std::string_view) {};
  std::function<void(std::string_view)> before_get = [](std::string_view) {};
};

class EventfulStore final : public Store {
 public:
  EventfulStore(std::shared_ptr<Store> store, StoreEvents events)
      : store_(std::move(store)), events_(std::move(events)) {}
  Status set(std::string_view key, std::span<const std::byte> value) override {
    events_.before_set(key);
    Status status = store_->set(key, value);
    events_.after_set(key);
    return status;
  }
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
    events_.before_get(key);
    return store_->get(key, deadline);
  }
  Status remove(std::string_view key) override { return store_->remove(key); }

 private:
  std::shared_ptr<Store> store_;
  StoreEvents events_;
};

/// Every node publishes `value` and reads what all published.
void exchange(const std::shared_ptr<Store>& store, int value) {
  spawn(kNodes, [&](Rank rank) {
    const auto session = make_session(store, rank, kNodes, 1h);
    const std::string mine = "value/" + std::to_string(rank);
    REQUIRE(session->set(mine, byte(value)).ok());
    for (int peer = 0; peer < kNodes; ++peer) {
      const auto seen = session->get("value/" + std::to_string(peer), generous());
      REQUIRE(seen.ok());
      CHECK(*seen == byte(value));
    }
  });
}

}  // namespace

TEST_CASE("a session sees its own keys, and those of no run before it") {
  const auto store = make_memory_store();
  for (int run = 0; run < 20; ++run) {
    exchange(store, run);
  }
}

TEST_CASE("a session names who did not come, on both sides, and stays failed") {
  const auto store = make_memory_store();
  exchange(store, 1);  // what it leaves behind is no sign of life
  const auto of_node_0 = make_session(store, 0, 3, 30ms);
  const Status absent = of_node_0->enter();
  CHECK(absent.fault() == Fault::deadline);
  CHECK(absent.message() == "node 0: waiting for node 1, 2: not there in time");
  CHECK(of_node_0->get("key", generous()).status().message() == absent.message());

  const auto of_node_2 = make_session(store, 2, 3, 30ms);
  CHECK(of_node_2->remove("key").message() == "node 2: waiting for node 0: not there in time");
}

TEST_CASE("what node 0 says when it gives up reaches those who wait with it") {
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    const auto session = make_session(store, rank, 3, rank == 0 ? 200ms : 1h);
    if (rank == 0) {
      CHECK(session->enter().fault() == Fault::deadline);
      CHECK(session->set("given-up/any", byte(5)).ok());
      return;
    }
    const auto reason = session->get("given-up/any", generous());
    REQUIRE(reason.ok());
    CHECK(*reason == byte(5));
  });
}

TEST_CASE("a node that starts again before all are there is let in") {
  const auto store = make_memory_store();
  const auto node_0 = make_session(store, 0, 3, 1h);
  std::thread waiting([&] { CHECK(node_0->enter().ok()); });
  // Node 1's first life: it has shown its number, seen the echo, and is gone.
  const auto mark = store->get("session", generous());
  REQUIRE(mark.ok());
  const std::string under = mark_text(*mark);
  REQUIRE(store->set(under + "/shown/1", number(77)).ok());
  REQUIRE(store->get(under + "/seen/1", generous()).ok());
  std::thread second_life([&] { CHECK(make_session(store, 1, 3, 1h)->enter().ok()); });
  while (*store->get(under + "/seen/1", generous()) == number(77)) {
    std::this_thread::yield();
  }
  CHECK(make_session(store, 2, 3, 1h)->enter().ok());
  waiting.join();
  second_life.join();
}

TEST_CASE("who comes too late as a node that there is leaves alone what that node has told") {
  const auto store = make_memory_store();
  std::vector<std::shared_ptr<Session>> nodes(2);
  spawn(2, [&](Rank rank) {
    nodes[static_cast<std::size_t>(rank)] = make_session(store, rank, 2, 1h);
    REQUIRE(nodes[static_cast<std::size_t>(rank)]->enter().ok());
  });
  REQUIRE(nodes[1]->set("told", byte(7)).ok());
  CHECK(make_session(store, 1, 2, 30ms)->enter().fault() == Fault::unexpected);
  const auto told = nodes[0]->get("told", generous());
  REQUIRE(told.ok());
  CHECK(*told == byte(7));
}

TEST_CASE("a node 0 that starts again takes over those who had come") {
  const auto store = make_memory_store();
  std::thread node_1([&] { CHECK(make_session(store, 1, 3, 1h)->enter().ok()); });
  // Node 0's first life: it has echoed node 1's number, and is gone.
  REQUIRE(store->set("session", number(5)).ok());
  const auto shown = store->get("0000000000000005/shown/1", generous());
  REQUIRE(shown.ok());
  REQUIRE(store->set("0000000000000005/seen/1", *shown).ok());
  std::thread node_0([&] { CHECK(make_session(store, 0, 3, 1h)->enter().ok()); });
  while (*store->get("session", generous()) == number(5)) {
    std::this_thread::yield();
  }
  CHECK(make_session(store, 2, 3, 1h)->enter().ok());
  node_0.join();
  node_1.join();
}

TEST_CASE("a store that is late to answer is not taken for another run's") {
  class LateStore final : public Store {
   public:
    explicit LateStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}
    Status set(std::string_view key, std::span<const std::byte> value) override {
      return store_->set(key, value);
    }
    Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
      if (key == "session" && late_ > 0) {
        --late_;
        return Status(Fault::deadline, "'session' did not come in time");
      }
      return store_->get(key, deadline);
    }
    Status remove(std::string_view key) override { return store_->remove(key); }

   private:
    std::shared_ptr<Store> store_;
    int late_ = 2;
  };
  const auto store = make_memory_store();
  std::thread node_0([&] {
    const Status status = make_session(std::make_shared<LateStore>(store), 0, 2, 1h)->enter();
    CHECK_MESSAGE(status.ok(), status.message());
  });
  CHECK(make_session(store, 1, 2, 1h)->enter().ok());
  node_0.join();
}

TEST_CASE(
    "of two runs that meet in one store at a time the later one is told, and the earlier goes on") {
  const auto store = make_memory_store();
  const auto first = make_session(store, 0, 2, 1h);
  std::thread waiting([&] { CHECK(first->enter().ok()); });
  REQUIRE(store->get("session", generous()).ok());
  const auto second = make_session(store, 0, 2, 1h);
  const Status status = second->enter();
  CHECK(status.fault() == Fault::unexpected);
  CHECK(
      status.message().starts_with("node 0: another one of this process is node 0 already (host "));
  CHECK_FALSE(second->set("given-up/any", byte(1)).ok());  // nor can it end the other run
  CHECK(make_session(store, 1, 2, 1h)->enter().ok());
  waiting.join();
  CHECK_FALSE(first->get("given-up/any", Deadline::after({})).ok());
}

TEST_CASE("a run in whose store another one has begun all the same notices") {
  const auto store = make_memory_store();
  const auto first = make_session(store, 0, 2, 1h);
  std::thread waiting([&] {
    const Status status = first->enter();
    CHECK(status.fault() == Fault::unexpected);
    CHECK(status.message() == "node 0: another run meets in this store; give each its own");
  });
  REQUIRE(store->get("session", generous()).ok());
  REQUIRE(store->set("session", number(5)).ok());
  waiting.join();
}

TEST_CASE(
    "a second process of a rank is told while the first lives, and takes over once it is gone") {
  const Scratch directory;
  const auto open = [&] { return make_file_store(directory.path().string()); };
  for (const Rank rank : {0, 1}) {
    CAPTURE(rank);
    const pid_t first = ::fork();
    if (first == 0) {
      (void)make_session(open(), rank, 3, 1h)->enter();
      ::_exit(0);
    }
    if (rank == 1) {
      REQUIRE(open()->set("session", number(7)).ok());  // a node 0 has begun
    }
    REQUIRE(open()->get(fmt::format("claim/{}", rank), generous()).ok());
    const Status refused = make_session(open(), rank, 3, 1h)->enter();
    CHECK(refused.fault() == Fault::unexpected);
    CHECK_MESSAGE(refused.message().find(fmt::format("another process is node {} already", rank)) !=
                      std::string::npos,
                  refused.message());
    CHECK(refused.message().find(fmt::format("pid {}", first)) != std::string::npos);
    REQUIRE(::kill(first, SIGKILL) == 0);
    REQUIRE(::waitpid(first, nullptr, 0) == first);
  }
  spawn(3, [&](Rank rank) { CHECK(make_session(open(), rank, 3, 1h)->enter().ok()); });
}

TEST_CASE("a record of a process elsewhere counts as long as it beats") {
  const auto store = make_memory_store();
  REQUIRE(store->set("claim/0", record_from_elsewhere(1)).ok());
  std::atomic<bool> over{false};
  std::thread elsewhere([&] {
    for (std::uint64_t beat = 2; !over; ++beat) {
      REQUIRE(store->set("claim/0", record_from_elsewhere(beat)).ok());
      std::this_thread::yield();
    }
  });
  const Status refused = make_session(store, 0, 1, 1h)->enter();
  over = true;
  elsewhere.join();
  CHECK(refused.fault() == Fault::unexpected);
  CHECK(refused.message().find("host far-away, pid 1") != std::string::npos);
  CHECK(make_session(store, 0, 1, 1h)->enter().ok());  // it is silent
}

TEST_CASE("a node 0 disturbs no run whose node 0 is elsewhere and silent") {
  for (const int nodes : {1, 2, 4}) {
    CAPTURE(nodes);
    const auto store = make_memory_store();
    begin_elsewhere(*store);
    const auto second = make_session(store, 0, nodes, 1800ms);
    CHECK(second->enter().ok() == (nodes == 1));  // alone, it may be the next life of the first
    (void)second->set("given-up/any", byte(1));
    CHECK(store->get("0000000000000005/go", Deadline::after({})).ok());
    if (nodes > 1) {
      CHECK(*store->get("session", Deadline::after({})) == number(5));
      CHECK(*store->get("left/0", Deadline::after({})) == list_of("0000000000000005/go"));
      CHECK(second->enter().message().find("host far-away, pid 1) was node 0 before") !=
            std::string::npos);
    }
  }
}

TEST_CASE("a job that starts again elsewhere takes the store over, in whatever order it comes") {
  for (const bool node_0_first : {true, false}) {
    CAPTURE(node_0_first);
    const auto store = make_memory_store();
    begin_elsewhere(*store);
    std::thread node_0([&] {
      if (!node_0_first) {
        REQUIRE(store->get("0000000000000005/shown/1", generous()).ok());
      }
      CHECK(make_session(store, 0, 2, 1h)->enter().ok());
    });
    if (node_0_first) {
      while (*store->get("claim/0", generous()) == record_from_elsewhere(1)) {
        std::this_thread::yield();
      }
    }
    CHECK(make_session(store, 1, 2, 1h)->enter().ok());
    node_0.join();
    CHECK_FALSE(store->get("0000000000000005/go", Deadline::after({})).ok());
  }
}

TEST_CASE("a node that all have waited for is in, also where another session has begun since") {
  const auto store = make_memory_store();
  REQUIRE(store->set("session", number(5)).ok());
  StoreEvents events;
  events.before_get = [&](std::string_view key) {
    const auto shown = store->get("0000000000000005/shown/1", Deadline::after({}));
    if (key == "session" && shown.ok()) {
      REQUIRE(store->set("0000000000000005/seen/1", *shown).ok());
      REQUIRE(store->set("0000000000000005/go", {}).ok());
      REQUIRE(store->set("session", number(6)).ok());
    }
  };
  const auto session = make_session(std::make_shared<EventfulStore>(store, events), 1, 2, 300ms);
  REQUIRE(session->enter().ok());
  REQUIRE(session->set("told", byte(7)).ok());
  CHECK(store->get("0000000000000005/told", Deadline::after({})).ok());
}

TEST_CASE("of two nodes 0 at one moment, the one that loses leaves alone what is the other's") {
  const auto store = make_memory_store();
  REQUIRE(store->set("left/0", list_of("of-the-winner")).ok());
  REQUIRE(store->set("of-the-winner", byte(1)).ok());
  bool won = false;
  StoreEvents events;
  events.before_set = [&](std::string_view key) {
    if (key == "session") {  // the loser takes itself for the node; the other has written last
      won = store->set("claim/0", record_from_elsewhere(1)).ok();
    }
  };
  const auto loser = make_session(std::make_shared<EventfulStore>(store, events), 0, 3, 1h);
  CHECK(loser->enter().fault() == Fault::unexpected);
  CHECK(won);
  CHECK_FALSE(loser->set("given-up/any", byte(1)).ok());
  CHECK(store->get("of-the-winner", Deadline::after({})).ok());
  CHECK(*store->get("left/0", Deadline::after({})) == list_of("of-the-winner"));
}

TEST_CASE("a node 0 that finds another session in its store leaves alone what is the other's") {
  const auto store = make_memory_store();
  REQUIRE(store->set("left/0", list_of("of-the-other")).ok());
  REQUIRE(store->set("of-the-other", byte(1)).ok());
  const auto session = make_session(store, 0, 2, 1h);
  std::thread waiting([&] { CHECK(session->enter().fault() == Fault::unexpected); });
  REQUIRE(store->get("session", generous()).ok());
  REQUIRE(store->set("session", number(5)).ok());
  waiting.join();
  CHECK(store->get("of-the-other", Deadline::after({})).ok());
}

TEST_CASE("a node 0 that starts again and again keeps nobody waiting without end") {
  constexpr std::uint64_t kLives = 300;
  const auto store = make_memory_store();
  std::uint64_t life = 1;
  REQUIRE(store->set("session", number(life)).ok());
  StoreEvents events;
  events.after_set = [&](std::string_view key) {
    if (key.ends_with("/shown/1")) {  // each life receives node 1 …
      REQUIRE(store->set(mark_text(number(life)) + "/seen/1", *store->get(key, generous())).ok());
    }
  };
  events.before_get = [&](std::string_view key) {
    if (key.ends_with("/go") && life < kLives) {  // … and is gone when that waits for the rest
      REQUIRE(store->set("session", number(++life)).ok());
    }
  };
  const auto node_1 = make_session(std::make_shared<EventfulStore>(store, events), 1, 3, 50ms);
  CHECK(node_1->enter().fault() == Fault::deadline);
  CHECK(life > 1);
  CHECK(life < kLives);
}

TEST_CASE("what is no record keeps nobody out") {
  const auto store = make_memory_store();
  REQUIRE(store->set("claim/0", byte(9)).ok());
  CHECK(make_session(store, 0, 1, 1h)->enter().ok());
}

TEST_CASE("a stop ends every wait of a session, which says whom it was for") {
  const StopRequest stop = [] { return true; };
  const auto store = make_memory_store();
  const Status of_node_0 = make_session(store, 0, 3, 1h, stop)->enter();
  CHECK(of_node_0.fault() == Fault::stopped);
  CHECK(of_node_0.message() == "node 0: stopped while waiting for node 1, 2");
  const Status of_node_2 = make_session(store, 2, 3, 1h, stop)->enter();
  CHECK(of_node_2.fault() == Fault::stopped);
  CHECK(of_node_2.message() == "node 2: stopped while waiting for node 0");
  std::atomic<bool> later{false};
  const auto alone = make_session(make_memory_store(), 0, 1, 1h, [&] { return later.load(); });
  REQUIRE(alone->enter().ok());
  std::thread stopper([&] { later = true; });
  CHECK(alone->get("nobody", Deadline::after(1h)).status().fault() == Fault::stopped);
  stopper.join();
  // A look still answers.
  REQUIRE(alone->set("there", byte(4)).ok());
  CHECK(alone->get("there", Deadline::after({})).ok());
  CHECK(alone->get("nobody", Deadline::after({})).status().fault() == Fault::deadline);
}

TEST_CASE("a store does not grow with the runs that it serves") {
  const Scratch directory;
  const auto keys = [&] {
    const fs::directory_iterator all(directory.path());
    return std::distance(fs::begin(all), fs::end(all));
  };
  exchange(make_file_store(directory.path().string()), 0);
  exchange(make_file_store(directory.path().string()), 1);
  const auto before = keys();
  for (int run = 2; run < 6; ++run) {
    exchange(make_file_store(directory.path().string()), run);
  }
  CHECK(keys() == before);
}

TEST_CASE("one node needs nobody") {
  const auto session = make_session(make_memory_store(), 0, 1, 30ms);
  CHECK(session->set("key", byte(3)).ok());
  CHECK(session->get("key", generous()).ok());
}

TEST_CASE("what somebody else wrote under a session's keys passes for no number") {
  const auto store = make_memory_store();
  REQUIRE(store->set("session", byte(1)).ok());
  std::thread node_1([&] { CHECK(make_session(store, 1, 2, 1h)->enter().ok()); });
  CHECK(make_session(store, 0, 2, 1h)->enter().ok());
  node_1.join();
}

}  // namespace sotto::test::session_test
