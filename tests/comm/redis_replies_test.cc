// What a Redis server may answer, and what is no Redis server: which fault it is, and that no more
// is read of it than was asked for.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/shared_store.h>

#include "nodes.h"
#include "raw_server.h"
#include "support/free_port.h"
#include "support/skip.h"

namespace sotto::test::redis_replies_test {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMost = 64;

bool has_hiredis() {
  try {
    return make_shared_store("seeds", "redis://127.0.0.1:1/") != nullptr;
  } catch (const Error&) {
    return false;
  }
}

std::shared_ptr<SharedStore> redis_at(int port, const StopRequest& stop = {}) {
  return make_shared_store("seeds", fmt::format("redis://127.0.0.1:{}/job/", port), stop);
}

/// A line of a client, without its end; none once it has gone.
std::optional<std::string> line_of(const RawServer::Client& client) {
  std::string line;
  for (char c = 0; client.read(&c, 1);) {
    if (c == '\n') {
      line.pop_back();
      return line;
    }
    line += c;
  }
  return std::nullopt;
}

/// The words of a command; none once the client has gone.
std::vector<std::string> command_of(const RawServer::Client& client) {
  std::vector<std::string> words;
  const auto count = line_of(client);
  for (int left = count ? std::stoi(count->substr(1)) : 0; left > 0; --left) {
    const auto size = line_of(client);
    std::string word(size ? std::stoul(size->substr(1)) + 2 : 0, '\0');
    if (!size || !client.read(word.data(), word.size())) {
      return {};
    }
    word.resize(word.size() - 2);
    words.push_back(word);
  }
  return words;
}

/// A server that answers each command with this.
class Answers {
 public:
  explicit Answers(std::string text)
      : server_([text = std::move(text)](const RawServer::Client& client) {
          while (!command_of(client).empty()) {
            client.write(text);
          }
        }) {}
  int port() const { return server_.port(); }

 private:
  RawServer server_;
};

/// Once, without a further attempt.
Deadline once() { return Deadline::after({}); }

bool holds(const Status& status, std::string_view part) {
  return status.message().find(part) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "replies of Redis: an error of what is stored is malformed, and others are the server's") {
  if (!has_hiredis()) {
    SOTTO_SKIP("built without hiredis");
  }
  for (const auto& [error, fault] : std::vector<std::pair<std::string, Fault>>{
           {"WRONGTYPE Operation against a key of another kind", Fault::malformed},
           {"LOADING Redis is loading the dataset in memory", Fault::io},
           {"OOM command not allowed when used memory > 'maxmemory'.", Fault::io},
           {"NOAUTH Authentication required.", Fault::io},
           {"READONLY You can't write against a read only replica.", Fault::io},
           {"ERR unknown command", Fault::io},
           {"", Fault::io}}) {
    const std::string& text = error;  // a binding cannot be captured
    CAPTURE(text);
    const Answers server("-" + text + "\r\n");
    const auto store = redis_at(server.port());
    const std::array faults = {store->look("a", kMost, once()).status(),
                               store->claim("a", bytes_of("x"), kMost, once()).status(),
                               store->put("a", bytes_of("x"), once()), store->drop("a", once()),
                               store->get("a", once()).status()};
    for (const Status& status : faults) {
      CHECK(status.fault() == fault);
      CHECK(holds(status, text));
      CHECK(holds(status, fmt::format("redis at 127.0.0.1:{}", server.port())));
    }
  }
}

TEST_CASE("replies of Redis: a value is one of its length, however it comes") {
  if (!has_hiredis()) {
    SOTTO_SKIP("built without hiredis");
  }
  const RawServer slow([](const RawServer::Client& client) {
    while (!command_of(client).empty()) {
      for (const char c : std::string_view("$3\r\nabc\r\n")) {
        client.write({&c, 1});
      }
    }
  });
  CHECK(redis_at(slow.port())->look("a", kMost, generous()).value() == bytes_of("abc"));
  const Answers empty("$0\r\n\r\n");
  CHECK_FALSE(redis_at(empty.port())->look("a", kMost, generous()).value());
  const Answers longer(fmt::format("${}\r\n{}\r\n", kMost + 1, std::string(kMost + 1, 'x')));
  CHECK(redis_at(longer.port())->look("a", kMost, once()).status().fault() == Fault::malformed);
  for (const std::string text : {":5\r\n", "+OK\r\n", "$-1\r\n"}) {
    CAPTURE(text);
    const Answers other(text);
    CHECK(redis_at(other.port())->look("a", kMost, once()).status().fault() == Fault::malformed);
  }
}

TEST_CASE(
    "replies of Redis: what is none is the server's fault, and a list has no room made for it") {
  if (!has_hiredis()) {
    SOTTO_SKIP("built without hiredis");
  }
  for (const std::string text : {"*2147483647\r\n", "*1\r\n*1\r\n*2147483647\r\n", "%9\r\n",
                                 "~9\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"}) {
    CAPTURE(text);
    const Answers server(text);
    const Status status = redis_at(server.port())->look("a", kMost, once()).status();
    CHECK(status.fault() == Fault::io);
    CHECK(holds(status, "does not answer as a Redis server does"));
  }
  const Answers negative("$-7\r\n");
  CHECK(redis_at(negative.port())->look("a", kMost, once()).status().fault() == Fault::io);
}

TEST_CASE("replies of Redis: of an answer that never ends no more is read than was asked for") {
  if (!has_hiredis()) {
    SOTTO_SKIP("built without hiredis");
  }
  for (const std::string head : {"$500000000\r\n", "$9223372036854775807\r\n", "+", "-", ":"}) {
    CAPTURE(head);
    std::atomic<bool> refused{false};
    const RawServer server([&](const RawServer::Client& client) {
      while (!command_of(client).empty()) {
        client.write(head);
        const std::string many(1'000'000, '1');
        for (int sent = 0; sent < 300; ++sent) {  // until the client has had enough
          client.write(many);
        }
        refused = true;
      }
    });
    const auto store = redis_at(server.port());
    for (const Status& status :
         {store->look("a", kMost, once()).status(), store->drop("a", once())}) {
      CHECK(status.fault() == Fault::io);
      CHECK_MESSAGE(holds(status, "longer than what was asked for"), status.message());
    }
    while (!refused) {
      std::this_thread::yield();
    }
  }
}

TEST_CASE("replies of Redis: one that never comes is waited for by the call's own deadline") {
  if (!has_hiredis()) {
    SOTTO_SKIP("built without hiredis");
  }
  const RawServer silent([](const RawServer::Client& client) { client.wait(); });
  const auto store = redis_at(silent.port());
  CHECK(holds(store->put("a", bytes_of("x"), once()), "did not answer"));
  CHECK(store->drop("a", once()).fault() == Fault::io);
  // A stop ends them sooner.
  const auto stopped = redis_at(silent.port(), [] { return true; });
  CHECK(stopped->put("a", bytes_of("x"), generous()).fault() == Fault::io);
  CHECK(stopped->look("a", kMost, generous()).status().fault() == Fault::io);
  // A name that nobody knows, whether a name server says so or does not answer.
  const auto nowhere = make_shared_store("seeds", "redis://no-such-host.invalid:1/");
  const Status unknown = nowhere->look("a", kMost, once()).status();
  CHECK(unknown.fault() == Fault::io);
  CHECK(holds(unknown, "name"));
}

}  // namespace sotto::test::redis_replies_test
