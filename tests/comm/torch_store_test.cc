// The store in a TCPStore of PyTorch's: against servers made of bytes, hostile ones among them, and
// against the PyTorch that is here.
#include <sotto/comm/stores.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/session.h>

#include "forked_process.h"
#include "nodes.h"
#include "store_contract.h"
#include "support/free_port.h"
#include "support/skip.h"
#include "torch_server.h"

namespace sotto::test::torch_store_test {

namespace {

constexpr std::array kTorchServers = {TorchServer::until_2_0, TorchServer::of_2_1,
                                      TorchServer::since_2_2, TorchServer::since_2_2_libuv};

std::shared_ptr<Store> torch_store(int port, const std::string& run = "run") {
  return make_store(fmt::format("torch://127.0.0.1:{}/{}", port, run), 1);
}

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What a store says of a server that answers `serve`'s way.
Status said_of(const std::function<void(const RawServer::Client&)>& serve) {
  const RawServer server(serve);
  const auto store = torch_store(server.port());
  return store->get("key", soon()).status();
}

/// Answers as a server since 2.2 does until a request other than for the number of keys comes.
void greet(const RawServer::Client& client) {
  char greeting[5] = {};
  if (client.read(greeting, sizeof greeting)) {
    for (auto request = client.number<std::uint8_t>(); request == 7;
         request = client.number<std::uint8_t>()) {
      client.write_number(std::int64_t{0});
    }
  }
}

}  // namespace

TEST_CASE("the store in a TCPStore keeps the contract with each generation of servers") {
  for (const TorchServer kind : kTorchServers) {
    CAPTURE(static_cast<int>(kind));
    FakeTorchStore server(kind);
    const auto first = torch_store(server.port());
    const auto second = torch_store(server.port());
    check_everything(*first, *second);
  }
}

TEST_CASE("of what is replaced or removed nothing stays in a TCPStore") {
  for (const TorchServer kind : kTorchServers) {
    CAPTURE(static_cast<int>(kind));
    FakeTorchStore server(kind);
    const auto store = torch_store(server.port());
    const std::vector<std::byte> large(3'000'001, std::byte{7});
    REQUIRE(store->set("a", large).ok());
    CHECK(server.values().size() == 4);
    REQUIRE(store->set("a", large).ok());
    CHECK(server.values().size() == 4);
    REQUIRE(store->set("a", bytes_of("short")).ok());
    CHECK(server.values().size() == 1);
    REQUIRE(store->set("a", large).ok());
    REQUIRE(torch_store(server.port())->remove("a").ok());
    CHECK(server.values().empty());
  }
}

TEST_CASE("a line to a TCPStore that breaks in the middle of a set or a remove loses nothing") {
  for (const TorchServer kind : {TorchServer::of_2_1, TorchServer::since_2_2_libuv}) {
    for (int requests = 0; requests < 12; ++requests) {
      CAPTURE(requests);
      FakeTorchStore server(kind);
      const auto store = torch_store(server.port());
      const std::vector<std::byte> before(2'500'000, std::byte{3});
      const std::vector<std::byte> after(3'000'001, std::byte{7});
      REQUIRE(store->set("a", before).ok());
      server.close_after(requests);
      REQUIRE(store->set("a", after).ok());
      const auto value = store->get("a", generous());
      REQUIRE_MESSAGE(value.ok(), value.status().message());
      CHECK(*value == after);
      CHECK(server.values().size() <= 4 + 3);  // the old pieces, at worst
      server.close_after(requests);
      REQUIRE(store->remove("a").ok());
      server.close_after(-1);
      CHECK(store->get("a", soon()).status().fault() == Fault::deadline);
    }
  }
}

TEST_CASE("two runs in one TCPStore do not see each other, and leave PyTorch's own keys alone") {
  FakeTorchStore server(TorchServer::since_2_2_libuv);
  const auto first = torch_store(server.port(), "job/1");
  const auto second = torch_store(server.port(), "job");
  REQUIRE(first->set("key", bytes_of("one")).ok());
  CHECK(second->get("key", soon()).status().fault() == Fault::deadline);
  CHECK(second->get("1/key", soon()).status().fault() == Fault::deadline);
  for (const auto& [key, value] : server.values()) {
    CHECK(key.front() != '/');  // with which PyTorch's begin
  }
}

TEST_CASE("a long value in a TCPStore that is replaced while it is fetched comes whole") {
  for (const TorchServer kind : {TorchServer::of_2_1, TorchServer::since_2_2_libuv}) {
    FakeTorchStore server(kind);
    const auto writer = torch_store(server.port());
    const auto reader = torch_store(server.port());
    const auto all = [](int i) { return std::vector(2'000'000, static_cast<std::byte>(i)); };
    REQUIRE(writer->set("value", all(0)).ok());
    std::thread replacing([&] {
      for (int i = 1; i < 6; ++i) {
        CHECK(writer->set("value", all(i)).ok());
      }
    });
    for (std::byte last{}; last != std::byte{5};) {
      const auto value = reader->get("value", generous());
      REQUIRE_MESSAGE(value.ok(), value.status().message());
      last = value->back();
      REQUIRE(value->size() == 2'000'000);
      REQUIRE(std::count(value->begin(), value->end(), last) == 2'000'000);
    }
    replacing.join();
  }
}

TEST_CASE("what is no TCPStore is named, and so is what to do") {
  const auto http = [](const RawServer::Client& client) {
    client.write("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
  };
  const auto ssh = [](const RawServer::Client& client) {
    client.write("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
    client.wait();
  };
  const auto closes = [](const RawServer::Client&) {};
  const auto half_old = [](const RawServer::Client& client) {
    if (client.number<std::uint8_t>() == 6) {
      client.write_number(std::int64_t{0});
    } else {
      client.write("?");
    }
  };
  for (const auto& serve :
       std::vector<std::function<void(const RawServer::Client&)>>{http, ssh, closes, half_old}) {
    const Status said = said_of(serve);
    CHECK(said.fault() == Fault::unexpected);
    CHECK_MESSAGE(holds(said.message(), "no such store"), said.message());
    CHECK_MESSAGE(holds(said.message(), "TORCHELASTIC_USE_AGENT_STORE"), said.message());
  }
}

TEST_CASE("a TCPStore that nobody serves, or that says nothing, ends a wait and is named") {
  const int port = free_port();
  const auto none = torch_store(port);
  const auto check_said = [](const Status& said, const std::string& what) {
    CHECK(said.fault() == Fault::io);
    CHECK_MESSAGE(holds(said.message(), what + ". torchrun's agent serves"), said.message());
  };
  std::thread asking([&] {
    check_said(none->get("key", soon()).status(),
               fmt::format("127.0.0.1:{}: nobody takes a connection", port));
  });
  // As sotto's own store does, which greets first.
  check_said(said_of([](const RawServer::Client& client) {
               client.write(std::string("\xFF\0\0\0\0\0\0\0\1\x7F", 10));
               client.wait();
             }),
             "it did not answer");
  asking.join();
}

TEST_CASE("a wait for a TCPStore ends once a stop is requested") {
  std::atomic<bool> stop{false};
  const RawServer silent([&](const RawServer::Client& client) {
    stop = true;
    client.wait();
  });
  const auto store =
      make_torch_store("127.0.0.1", silent.port(), "run", [&] { return stop.load(); });
  const Status said = store->get("key", generous()).status();
  CHECK(said.fault() == Fault::stopped);
  CHECK_MESSAGE(holds(said.message(), "stopped while waiting"), said.message());
}

TEST_CASE("answers of a TCPStore that break its rules are refused") {
  const auto ready = [](const RawServer::Client& client) { client.write_number(std::uint8_t{0}); };
  // Each comes in place of the answer to the first `check`, and what follows it.
  const std::vector<std::pair<std::function<void(const RawServer::Client&)>, std::string>> lies = {
      {[](const RawServer::Client& client) { client.write_number(std::uint8_t{2}); },
       "0 or 1 was due"},
      {[&](const RawServer::Client& client) {
         ready(client);
         client.write_number(std::uint64_t{1} << 62U);
       },
       "it announces a value of 4611686018427387904 bytes"},
      {[&](const RawServer::Client& client) {
         ready(client);
         client.write_number(std::uint64_t{1} << 20U);
       },
       "it announces a value of 1048576 bytes"},
      {[&](const RawServer::Client& client) {
         ready(client);
         client.write_run("?what is this");
       },
       "not of sotto's"},
      {[&](const RawServer::Client& client) {
         ready(client);
         client.write_run(std::string("\x02\x01", 2));
       },
       "not of sotto's"},
      {[&](const RawServer::Client& client) {
         ready(client);
         client.write_run("\x02" + std::string(16, '\x7F'));  // a value of 2^63 bytes and more
       },
       "not of sotto's"},
      {[&](const RawServer::Client& client) {
         ready(client);
         client.write_run("\x02" + std::string(8, '\1') + std::string("\0\0\x10\0\0\0\0\0", 8));
         ready(client);
         client.write_run("too short a piece");
       },
       "another length"},
  };
  for (const auto& lie : lies) {
    const Status said = said_of([&](const RawServer::Client& client) {
      greet(client);
      lie.first(client);
      client.wait();
    });
    CHECK(said.fault() == Fault::malformed);
    CHECK_MESSAGE(holds(said.message(), lie.second), said.message());
  }
}

TEST_CASE("a TCPStore that closes in the middle of an answer is lost, not believed") {
  for (std::size_t cut = 0; cut < 14; ++cut) {
    const Status said = said_of([&](const RawServer::Client& client) {
      greet(client);
      std::string answer("\0\5\0\0\0\0\0\0\0\1four", 14);
      client.write(std::string_view(answer).substr(0, cut));
    });
    CHECK(said.fault() == Fault::io);
    CHECK_MESSAGE(holds(said.message(), "closed the connection"), said.message());
  }
}

TEST_CASE("a run's name that no key has room for is refused") {
  CHECK_THROWS_AS((void)make_torch_store("127.0.0.1", 1, std::string(3'000, 'r')), Error);
}

TEST_CASE("keys are not undone by a TCPStore, which is reached in plain text") {
  CHECK_THROWS_AS((void)make_store("torch://127.0.0.1:1/run", 0, {.security = security_of(2, 0)}),
                  Error);
}

TEST_CASE("nodes that start again meet in a TCPStore that has kept what the last ones left") {
  FakeTorchStore server(TorchServer::since_2_2_libuv);
  for (int generation = 0; generation < 3; ++generation) {
    CAPTURE(generation);
    // The number of nodes may change, as that of an elastic group's does.
    const int nodes = 2 + generation % 2;
    spawn(nodes, [&](Rank rank) {
      const auto session =
          make_session(torch_store(server.port()), rank, nodes, std::chrono::seconds(60));
      REQUIRE(session->enter().ok());
      const auto mine = fmt::format("word/{}", rank);
      const auto theirs = fmt::format("word/{}", (rank + 1) % nodes);
      const auto word = bytes_of(fmt::format("of {}", generation));
      REQUIRE(session->set(mine, word).ok());
      // Left in the store, as a node that is killed leaves it.
      CHECK(session->get(theirs, generous()).value() == word);
    });
  }
}

TEST_CASE("the store keeps the contract in the TCPStore of the PyTorch that is here") {
  const std::string python = SOTTO_PYTHON;
  if (std::system((python + " -c 'import torch.distributed' > /dev/null 2>&1").c_str()) != 0) {
    SOTTO_SKIP("no Python with torch");
  }
  const int port = free_port();
  const std::string serve = fmt::format(
      "import datetime, signal, torch.distributed as d\n"
      "s = d.TCPStore('127.0.0.1', {}, None, True, datetime.timedelta(seconds=60),"
      " wait_for_workers=False)\n"
      "signal.pause()\n",
      port);
  ForkedProcess server([&] {
    const int quiet = ::open("/dev/null", O_RDWR);
    ::dup2(quiet, STDERR_FILENO);
    ::execlp(python.c_str(), python.c_str(), "-c", serve.c_str(), nullptr);
  });
  const auto deadline = generous();
  const auto first = torch_store(port);
  const auto second = torch_store(port);
  while (!first->set("here", {}).ok()) {
    REQUIRE_FALSE(deadline.expired());
  }
  check_everything(*first, *second);
  CHECK(second->remove("big").ok());
  CHECK(first->get("big", soon()).status().fault() == Fault::deadline);
}

}  // namespace sotto::test::torch_store_test
