// Transports and stores to which the system does not give the threads that they need.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/stores.h>

#include "nodes.h"

namespace sotto::test::thread_shortage_test {

namespace {

/// The messages of the nodes of a ring of two that found no thread, where the system gives no more
/// than `starts`.
std::vector<std::string> refused_after(std::size_t starts, const std::string& transport) {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  std::vector<Status> ends(2);
  {
    const ThreadShortage shortage(starts);
    spawn(2, [&](Rank rank) {
      auto options = options_for(graph, rank, store, 100);
      options.connect_timeout = std::chrono::seconds(2);
      ends[static_cast<std::size_t>(rank)] = make_transport(transport, options).status();
    });
  }
  std::vector<std::string> messages;
  for (const Status& end : ends) {
    if (end.fault() == Fault::io) {
      messages.emplace_back(end.message());
    }
  }
  return messages;
}

}  // namespace

TEST_CASE("a transport that lacks a thread is a fault of the world, which counts the threads") {
  for (const TransportInfo& info : transports()) {
    if (!info.available || info.name != "gloo") {
      continue;  // the others start no thread while they connect, or need a GPU
    }
    const std::string name(info.name);
    CAPTURE(name);
    for (std::size_t starts = 0; starts < 4; ++starts) {  // one to connect and one a neighbour
      CAPTURE(starts);
      const auto messages = refused_after(starts, name);
      CHECK_FALSE(messages.empty());
      for (const std::string& message : messages) {
        CAPTURE(message);
        CHECK(message.find("the system gave 0 of 1 ") != std::string::npos);
        CHECK(message.find("pids.max") != std::string::npos);
      }
    }
    CHECK(refused_after(100, name).empty());
  }
}

TEST_CASE("a store whose host's name nobody can look up for lack of a thread is a shortage") {
  for (const std::string url : {"tcp://localhost:1", "redis://localhost:1"}) {
    CAPTURE(url);
    const ThreadShortage shortage(0);
    std::string said;
    try {
      (void)make_store(url, 1, {.insecure = true, .known_by = generous()});
    } catch (const Shortage& error) {
      said = error.what();
    } catch (const Error& error) {
      const std::string why = error.what();
      const bool lacking = why.find("this build lacks") != std::string::npos;
      CHECK_MESSAGE(lacking, why);
      continue;
    }
    CHECK(said.find("look-up: the system gave 0 of 1 ") != std::string::npos);
  }
}

}  // namespace sotto::test::thread_shortage_test
