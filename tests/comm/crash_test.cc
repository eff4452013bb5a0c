// What is left when a node's process dies or stops: two survivors on a ring of three.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "forked_process.h"
#include "nodes.h"
#include "support/scratch.h"

namespace sotto::test::crash_test {

namespace {

/// Rank 2 of the ring, in a process of its own: runs `play(transport)` once connected; afterwards
/// it only waits for its end.
ForkedProcess start_victim(const std::string& name, const Graph& graph,
                           const std::string& directory, std::size_t max_payload_bytes,
                           const std::function<void(Transport&)>& play) {
  return ForkedProcess([&] {
    const auto store = make_file_store(directory);
    auto transport = open_transport(name, options_for(graph, 2, store, max_payload_bytes));
    if (transport.ok()) {
      play(**transport);
      (void)store->set("ready", {});
      for (;;) {
        ::pause();
      }
    }
  });
}

std::vector<std::string> process_transports() {
  std::vector<std::string> names;
  for (const TransportInfo& info : transports()) {
    if (info.available && info.processes && info.name != "nccl") {
      names.emplace_back(info.name);
    }
  }
  if (have_zmq()) {
    names.emplace_back(kSecured);
  }
  (void)fake_world();
  names.emplace_back(kFakeNccl);
  return names;
}

/// Polls until rank 2 is reported lost. The other survivor may leave once it has seen that.
void expect_loss_of_rank_2(Transport& transport) {
  for (;;) {
    const auto event = transport.poll(generous());
    REQUIRE_MESSAGE(event.ok(), event.status().message());
    REQUIRE(event->kind != TransportEvent::Kind::exchange_done);
    if (event->kind == TransportEvent::Kind::peer_lost && event->peer == 2) {
      CHECK_FALSE(event->reason.empty());
      return;
    }
  }
}

/// Posts an exchange with both peers, kills rank 2 when both survivors have, and expects the news.
void lose_rank_2(Transport& transport, const Exchange& exchange, Store& store, Rank rank,
                 ForkedProcess& victim) {
  const Status posted = transport.post(exchange);
  REQUIRE_MESSAGE(posted.ok(), posted.message());
  if (rank == 0) {
    REQUIRE(store.get("posted", generous()).ok());
    victim.kill(SIGKILL);
  } else {
    REQUIRE(store.set("posted", {}).ok());
  }
  expect_loss_of_rank_2(transport);
}

void survive(const std::string& name, std::size_t payload_bytes, bool after_an_exchange,
             const std::function<void(Transport&)>& victim_plays) {
  CAPTURE(name);
  const Scratch directory;
  const Graph graph = ring(3);
  ForkedProcess victim =
      start_victim(name, graph, directory.path().string(), payload_bytes, victim_plays);
  const auto store = make_file_store(directory.path().string());
  spawn(2, [&](Rank rank) {
    const Swap swap(graph, rank, {.round = 1}, payload_bytes);
    const auto transport = connect(name, options_for(graph, rank, store, payload_bytes));
    if (after_an_exchange) {
      swap_frames(*transport, graph, rank, {.round = 0}, payload_bytes);
    }
    REQUIRE(store->get("ready", generous()).ok());
    lose_rank_2(*transport, swap.exchange, *store, rank, victim);
  });
}

}  // namespace

TEST_CASE("a peer that is killed before its first message is lost") {
  for (const auto& name : process_transports()) {
    survive(name, 1000, false, [](Transport&) {});
  }
}

TEST_CASE("a peer that is killed after an exchange is lost") {
  for (const auto& name : process_transports()) {
    survive(name, 1000, true,
            [](Transport& transport) { swap_frames(transport, ring(3), 2, {.round = 0}, 1000); });
  }
}

TEST_CASE("a peer that is killed in the middle of a large message is lost") {
  constexpr std::size_t kLarge = 16U << 20;  // more than the kernel buffers
  for (const auto& name : process_transports()) {
    // It has begun to send, and stops there: nobody polls. It takes nothing, so that the survivors
    // cannot be done where a backend moves whole messages by threads of its own.
    Swap swap(ring(3), 2, {.round = 1}, kLarge);
    swap.exchange.receives.clear();
    survive(name, kLarge, false, [&](Transport& transport) {
      const Status posted = transport.post(swap.exchange);
      sotto::check(posted.ok(), "the victim's half is posted");
    });
  }
}

TEST_CASE("a stopped peer runs into the deadline, and nobody waits for it when leaving") {
  for (const auto& name : process_transports()) {
    CAPTURE(name);
    const Scratch directory;
    const Graph graph = ring(3);
    ForkedProcess victim =
        start_victim(name, graph, directory.path().string(), 1000, [](Transport&) {});
    const auto store = make_file_store(directory.path().string());
    spawn(2, [&](Rank rank) {
      const Swap swap(graph, rank, {.round = 1}, 1000);
      const auto transport = connect(name, options_for(graph, rank, store, 1000));
      REQUIRE(store->get("ready", generous()).ok());
      if (rank == 0) {
        REQUIRE(store->get("connected", generous()).ok());  // rank 1 has heard of the victim
        victim.kill(SIGSTOP);
        REQUIRE(store->set("stopped", {}).ok());
      } else {
        REQUIRE(store->set("connected", {}).ok());
      }
      REQUIRE(store->get("stopped", generous()).ok());
      REQUIRE(transport->post(swap.exchange).ok());
      if (reports_singly(name)) {
        const auto first = transport->poll(generous());
        REQUIRE_MESSAGE(first.ok(), first.status().message());
        REQUIRE(first->kind == TransportEvent::Kind::frame);
      }
      const auto second = transport->poll(Deadline::after(std::chrono::milliseconds(100)));
      REQUIRE(second.status().fault() == Fault::deadline);
      const auto silent = reports_singly(name) ? "from 2" : fmt::format("from {}, 2", 1 - rank);
      CHECK_MESSAGE(second.status().message().find("no frame yet " + silent) != std::string::npos,
                    second.status().message());
      REQUIRE(store->set("over/" + std::to_string(rank), {}).ok());
      REQUIRE(store->get("over/" + std::to_string(1 - rank), generous()).ok());
    });
  }
}

TEST_CASE("a peer that dies while others connect is a fault, and does not disturb a restart") {
  for (const auto& name : process_transports()) {
    CAPTURE(name);
    const Scratch directory;
    const Graph graph = ring(2);
    // The address of a node that is no more.
    const auto store = make_file_store(directory.path().string());
    const pid_t gone = ::fork();
    REQUIRE(gone >= 0);
    if (gone == 0) {
      auto options = options_for(graph, 1, store, 100);
      options.connect_timeout = std::chrono::seconds(60);
      std::thread connecting([&] { (void)open_transport(name, options); });
      // The node's own address is out as soon as something stands in the store.
      while (std::filesystem::is_empty(directory.path())) {
        std::this_thread::yield();
      }
      ::_exit(0);
    }
    ::waitpid(gone, nullptr, 0);
    auto options = options_for(graph, 0, store, 100);
    options.connect_timeout = std::chrono::milliseconds(500);
    const auto transport = open_transport(name, options);
    REQUIRE_FALSE(transport.ok());
    CHECK_MESSAGE(transport.status().message().find("node 1") != std::string::npos,
                  transport.status().message());
    // The job starts again, in the store where the dead have left their addresses.
    spawn(2, [&](Rank rank) {
      const auto again = connect(name, options_for(graph, rank, store, 100));
      swap_frames(*again, graph, rank, {.round = 0}, 100);
    });
  }
}

}  // namespace sotto::test::crash_test
