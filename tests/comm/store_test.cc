// What every store must do, run for each that this build has.
#include <sotto/comm/stores.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sotto/base/error.h>
#include <sotto/comm/local_store.h>

#include "nodes.h"
#include "store_contract.h"
#include "support/free_port.h"
#include "support/redis_server.h"
#include "support/scratch.h"
#include "support/skip.h"

namespace sotto::test::store_test {

namespace {

namespace fs = std::filesystem;

bool has_component(std::string_view url) {
  try {
    (void)make_store(std::string(url), 1);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A store whose keys are node 1's: they end in "/1".
class OfNode1 final : public Store {
 public:
  explicit OfNode1(std::shared_ptr<Store> store) : store_(std::move(store)) {}
  Status set(std::string_view key, std::span<const std::byte> value) override {
    return store_->set(own(key), value);
  }
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
    return store_->get(own(key), deadline);
  }
  Status remove(std::string_view key) override { return store_->remove(own(key)); }

 private:
  static std::string own(std::string_view key) {
    const bool longest = key.size() == kMostStoreKeyBytes;
    return key.empty() ? "" : std::string(key.substr(0, key.size() - (longest ? 2 : 0))) + "/1";
  }
  std::shared_ptr<Store> store_;
};

}  // namespace

TEST_CASE("the memory store keeps the contract") {
  const auto store = make_store("memory:", 0);
  check_everything(*store, *store);
}

TEST_CASE("the file store keeps the contract") {
  const Scratch directory;
  const auto url = "file:" + (directory.path() / "made" / "deep").string();
  const auto first = make_store(url, 0);
  const auto second = make_store(url, 1);
  check_everything(*first, *second);
}

TEST_CASE("the file store shows whole values only, and leaves nothing lying about") {
  const Scratch directory;
  const auto writer = make_file_store(directory.path().string());
  const auto reader = make_file_store(directory.path().string());
  REQUIRE(writer->set("value", std::vector(100'000, std::byte{0})).ok());
  std::atomic<bool> stop = false;
  std::thread replacing([&] {
    for (int i = 0; i < 200; ++i) {
      const auto size = static_cast<std::size_t>(100'000 + i);
      CHECK(writer->set("value", std::vector(size, static_cast<std::byte>(i))).ok());
    }
    stop = true;
  });
  while (!stop) {
    const auto value = reader->get("value", generous());
    REQUIRE(value.ok());
    const auto i = value->size() - 100'000;
    REQUIRE(value->back() == static_cast<std::byte>(i));
    REQUIRE(std::count(value->begin(), value->end(), value->front()) ==
            static_cast<std::ptrdiff_t>(value->size()));
  }
  replacing.join();
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory.path())) {
    ++files;
  }
  CHECK(files == 1);
}

TEST_CASE("a file store that cannot be written says so") {
  const Scratch directory;
  const auto store = make_file_store((directory.path() / "gone").string());
  fs::remove_all(directory.path() / "gone");
  CHECK(store->set("key", bytes_of("value")).fault() == Fault::io);
  CHECK(store->get("key", soon()).status().fault() == Fault::deadline);
}

TEST_CASE("the store of a local job keeps the contract") {
  const LocalStore store;
  const auto first = store.open();
  const auto second = store.open();
  check_everything(*first, *second);
}

TEST_CASE("the store of a local job outlives a process that was killed in the middle of a wait") {
  const LocalStore store;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto mine = store.open();
    (void)mine->set("waits", {});
    (void)mine->get("never", generous());
    ::_exit(0);
  }
  const auto ours = store.open();
  REQUIRE(ours->get("waits", generous()).ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(ours->set("never", bytes_of("late")).ok());
  CHECK(ours->get("never", generous()).value() == bytes_of("late"));
}

TEST_CASE("the tcp store keeps the contract") {
  const auto url = fmt::format("tcp://127.0.0.1:{}", free_port());
  if (!has_component(url)) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto server = make_store(url, 0);
  const auto client = make_store(url, 1);
  check_everything(*server, *client);
  check_waiting(*client, *server);
}

TEST_CASE("clients of the tcp store may start before its server, and end after it began to end") {
  const int port = free_port();
  if (!has_component(fmt::format("tcp://127.0.0.1:{}", port))) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto local = make_memory_store();
  spawn(5, [&](Rank rank) {
    if (rank == 0) {
      for (Rank client = 1; client < 5; ++client) {
        REQUIRE(local->get(fmt::format("waits/{}", client), generous()).ok());
      }
      const auto server = make_tcp_store("127.0.0.1", port, true);
      REQUIRE(server->set("value", bytes_of("final")).ok());
      for (Rank client = 1; client < 5; ++client) {
        REQUIRE(server->get(fmt::format("heard/{}", client), generous()).ok());
      }
      return;  // the destructor serves until the last client has gone
    }
    const auto client = make_tcp_store("127.0.0.1", port, false);
    REQUIRE(local->set(fmt::format("waits/{}", rank), {}).ok());
    for (int i = 0; i < 20; ++i) {
      const auto value = client->get("value", generous());
      REQUIRE_MESSAGE(value.ok(), value.status().message());
      REQUIRE(*value == bytes_of("final"));
      if (i == 0) {
        REQUIRE(client->set(fmt::format("heard/{}", rank), {}).ok());
      }
    }
  });
}

TEST_CASE("the tcp store with keys keeps the contract") {
  const int port = free_port();
  if (!has_component(fmt::format("tcp://127.0.0.1:{}", port))) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  OfNode1 server(make_tcp_store("127.0.0.1", port, true, {.security = security_of(2, 0)}));
  OfNode1 client(make_tcp_store("127.0.0.1", port, false, {.security = security_of(2, 1)}));
  check_everything(server, client);
  check_waiting(client, server);
}

TEST_CASE("in a tcp store with keys, nobody speaks in another's name") {
  const int port = free_port();
  if (!has_component(fmt::format("tcp://127.0.0.1:{}", port))) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  std::vector<std::shared_ptr<Store>> nodes;
  for (Rank rank = 0; rank < 3; ++rank) {
    nodes.push_back(
        make_tcp_store("127.0.0.1", port, rank == 0, {.security = security_of(3, rank)}));
  }
  const auto refused = [](const Status& status) {
    CHECK(status.fault() == Fault::unexpected);
    CHECK_MESSAGE(status.message().find("is not node 1's to") != std::string::npos,
                  status.message());
  };
  REQUIRE(nodes[2]->set("model/5/2", bytes_of("two's")).ok());
  REQUIRE(nodes[0]->set("done", bytes_of("zero's")).ok());
  refused(nodes[1]->set("model/5/2", bytes_of("forged")));
  refused(nodes[1]->set("model/5/0", bytes_of("forged")));
  refused(nodes[1]->set("done", bytes_of("forged")));
  refused(nodes[1]->remove("done"));
  refused(nodes[1]->remove("model/5/2"));
  refused(nodes[1]->get("model/5/2", soon()).status());
  refused(nodes[1]->set("card/2-1", bytes_of("forged")));
  refused(nodes[1]->get("card/0-2", generous()).status());
  // Long values are refused in the middle of their pieces.
  refused(nodes[1]->set("model/5/2", std::vector<std::byte>(3'000'000)));
  CHECK(nodes[0]->get("model/5/2", generous()).value() == bytes_of("two's"));
  CHECK(nodes[1]->get("done", generous()).value() == bytes_of("zero's"));
  // What is theirs.
  CHECK(nodes[1]->set("model/5/1", bytes_of("one's")).ok());
  CHECK(nodes[2]->set("card/2-1", bytes_of("for one")).ok());
  CHECK(nodes[1]->get("card/2-1", generous()).value() == bytes_of("for one"));
  CHECK(nodes[1]->remove("card/2-1").ok());
  CHECK(nodes[0]->remove("model/5/2").ok());
  // The first to say it.
  CHECK(nodes[2]->set("given-up/any", bytes_of("two was first")).ok());
  refused(nodes[1]->set("given-up/any", bytes_of("no, one")));
  refused(nodes[1]->remove("given-up/any"));
  CHECK(nodes[1]->get("given-up/any", generous()).value() == bytes_of("two was first"));
}

TEST_CASE("a long value of a tcp store that is replaced while it is fetched comes whole") {
  const int port = free_port();
  if (!has_component(fmt::format("tcp://127.0.0.1:{}", port))) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto server = make_tcp_store("127.0.0.1", port, true);
  const auto client = make_tcp_store("127.0.0.1", port, false);
  const auto all = [](int i) { return std::vector(2'000'000, static_cast<std::byte>(i)); };
  REQUIRE(server->set("value", all(0)).ok());
  std::thread replacing([&] {
    for (int i = 1; i < 10; ++i) {
      CHECK(server->set("value", all(i)).ok());
    }
  });
  for (std::byte last{}; last != std::byte{9};) {
    const auto value = client->get("value", generous());
    REQUIRE_MESSAGE(value.ok(), value.status().message());
    last = value->back();
    REQUIRE(value->size() == 2'000'000);
    REQUIRE(std::count(value->begin(), value->end(), last) == 2'000'000);
  }
  replacing.join();
}

TEST_CASE("a tcp store with keys answers listed keys only, and its clients their server only") {
  const int port = free_port();
  if (!has_component(fmt::format("tcp://127.0.0.1:{}", port))) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto security = security_of(2, 0);
  const auto server = make_tcp_store("127.0.0.1", port, true, {.security = security});
  REQUIRE(server->set("model", bytes_of("secret")).ok());
  REQUIRE(server->set("long", std::vector<std::byte>(1'000'000)).ok());
  const auto client = make_tcp_store("127.0.0.1", port, false, {.security = security_of(2, 1)});
  REQUIRE(client->get("model", generous()).ok());

  // An unknown key is told so in the end; without one there is no answer.
  const auto stranger = make_tcp_store("127.0.0.1", port, false,
                                       {.security = Security{make_key_pair(), security.peers}});
  Status refused;
  for (std::chrono::milliseconds patience(100);
       refused.fault() != Fault::unexpected && patience.count() < 60'000; patience *= 4) {
    refused = stranger->get("model", Deadline::after(patience)).status();
    REQUIRE_FALSE(refused.ok());
  }
  CHECK(refused.fault() == Fault::unexpected);
  CHECK_MESSAGE(refused.message().find("does not admit this node's key") != std::string::npos,
                refused.message());
  const auto plain = make_tcp_store("127.0.0.1", port, false);
  CHECK(plain->get("model", soon()).status().fault() == Fault::deadline);

  // A server with another key than node 0's gets no question.
  Security misled = security_of(2, 1);
  auto lines = lines_of(2);
  lines[0].key = make_key_pair().public_key;
  misled.peers = std::make_shared<AllowList>(lines);
  const auto wary = make_tcp_store("127.0.0.1", port, false, {.security = misled});
  CHECK(wary->get("model", soon()).status().fault() == Fault::deadline);

  // A revoked key is not answered any more: not on the connection that it has, nor what it asked
  // before, nor in a handshake.
  std::thread asking([&] {
    CHECK_FALSE(client->get("later", Deadline::after(std::chrono::milliseconds(200))).ok());
    CHECK_FALSE(client->get("long", soon()).ok());
  });
  lines = lines_of(1);
  security.peers->update_allow_list(lines);
  REQUIRE(server->set("later", bytes_of("secret")).ok());
  asking.join();
  CHECK_FALSE(client->get("model", soon()).ok());
  CHECK(server->get("model", generous()).ok());

  CHECK_THROWS_AS((void)make_store("redis://127.0.0.1:1/", 0, {.security = security}), Error);
  security.peers->update_allow_list({});
  CHECK_THROWS_AS((void)make_tcp_store("127.0.0.1", port, false, {.security = security}), Error);
}

TEST_CASE("a tcp store without a server meets its deadline") {
  const int port = free_port();
  if (!has_component(fmt::format("tcp://127.0.0.1:{}", port))) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto client = make_tcp_store("127.0.0.1", port, false);
  CHECK(client->get("key", soon()).status().fault() == Fault::deadline);
}

TEST_CASE("a tcp store is not served beyond loopback, nor on a port in use") {
  const int port = free_port();
  if (!has_component(fmt::format("tcp://127.0.0.1:{}", port))) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  CHECK_THROWS_AS((void)make_tcp_store("192.0.2.1", port, true), Error);
  CHECK_THROWS_AS((void)make_tcp_store("0.0.0.0", port, true, {.insecure = true}), Error);
  CHECK_THROWS_AS((void)make_tcp_store("no.such.host.invalid", port, false), Error);
  CHECK_THROWS_AS((void)make_tcp_store("no.such.host.invalid", port, false, {.known_by = soon()}),
                  Error);
  const auto first = make_tcp_store("127.0.0.1", port, true);
  CHECK_THROWS_AS((void)make_tcp_store("127.0.0.1", port, true), Error);
}

TEST_CASE("the redis store keeps the contract") {
  if (!has_component("redis://127.0.0.1:1/")) {
    SOTTO_SKIP("built without hiredis");
  }
  if (!has_redis_server()) {
    SOTTO_SKIP("no redis-server");
  }
  const RedisServer server;
  const auto url = fmt::format("redis://127.0.0.1:{}/job", server.port);
  const auto first = make_store(url, 0);  // waits for the server to come up
  const auto second = make_store(url, 1);
  check_everything(*first, *second);
  const auto stranger = make_store(fmt::format("redis://127.0.0.1:{}/other", server.port), 0);
  CHECK(stranger->get("empty", soon()).status().fault() == Fault::deadline);
}

TEST_CASE("a redis store without a server is a fault at its deadline") {
  if (!has_component("redis://127.0.0.1:1/")) {
    SOTTO_SKIP("built without hiredis");
  }
  const auto store = make_redis_store("127.0.0.1", free_port(), "");
  CHECK(store->get("key", soon()).status().fault() == Fault::io);
}

}  // namespace sotto::test::store_test
