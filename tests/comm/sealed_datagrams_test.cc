// Datagrams of a run: they open for those that have its key, and for nobody else.
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/comm/sealed_datagrams.h>
#include <sotto/comm/trust/run_key.h>

namespace sotto::test::sealed_datagrams_test {

using namespace std::chrono_literals;

namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  return std::vector<std::byte>(count, std::byte{7});
}

SealedDatagrams at(const std::string& listen, const RunKey& key,
                   std::vector<std::string> seeds = {}) {
  return SealedDatagrams({.listen = listen, .seeds = std::move(seeds)}, key.derived("test"));
}

}  // namespace

TEST_CASE("datagrams: a message comes whole, with the address that it came from") {
  const RunKey key(make_key_pair());
  SealedDatagrams one = at("127.0.0.1:0", key);
  SealedDatagrams other = at("localhost:0", key);
  CHECK(one.address() != other.address());
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1200}}) {
    one.send(other.address(), some_bytes(count));
    const auto received = other.receive(Deadline::after(10s));
    REQUIRE(received.has_value());
    CHECK(received->message == some_bytes(count));
    CHECK(received->from == one.address());
  }
  one.send("no address", some_bytes(1));
  one.send(other.address(), some_bytes(5000));
  CHECK_FALSE(other.receive(Deadline::after(0ms)).has_value());
}

TEST_CASE("datagrams: without the run's key nothing opens") {
  const RunKey key(make_key_pair());
  SealedDatagrams receiver = at("127.0.0.1:0", key);
  SealedDatagrams stranger = at("127.0.0.1:0", RunKey(make_key_pair()));
  SealedDatagrams open = at("127.0.0.1:0", RunKey::open());
  SealedDatagrams friendly = at("127.0.0.1:0", key);
  stranger.send(receiver.address(), some_bytes(10));
  open.send(receiver.address(), some_bytes(10));
  friendly.send(receiver.address(), some_bytes(3));
  const auto received = receiver.receive(Deadline::after(10s));
  REQUIRE(received.has_value());
  CHECK(received->message.size() == 3);
  CHECK(receiver.refused() == 2);
}

TEST_CASE("datagrams: a flood of what does not open holds nobody who has no time") {
  const RunKey key(make_key_pair());
  SealedDatagrams receiver = at("127.0.0.1:0", key);
  SealedDatagrams stranger = at("127.0.0.1:0", RunKey(make_key_pair()));
  SealedDatagrams friendly = at("127.0.0.1:0", key);
  for (int k = 0; k < 100; ++k) {
    stranger.send(receiver.address(), some_bytes(1));
  }
  friendly.send(receiver.address(), some_bytes(3));
  CHECK_FALSE(receiver.receive(Deadline::after(0ms)).has_value());
  CHECK(receiver.refused() == 64);
  const auto received = receiver.receive(Deadline::after(10s));
  REQUIRE(received.has_value());
  CHECK(received->message == some_bytes(3));
  CHECK(receiver.refused() == 100);
}

TEST_CASE("datagrams: the first process takes a seed's place on its machine, others any port") {
  const RunKey key(make_key_pair());
  std::string seed;
  {
    const SealedDatagrams free = at("127.0.0.1:0", key);
    seed = free.address();
  }
  SealedDatagrams first = at("", key, {seed});
  CHECK(first.address() == seed);
  SealedDatagrams second = at("", key, {seed});
  CHECK(second.address() != seed);
  CHECK(second.address().starts_with("127.0.0.1:"));
  CHECK_THROWS_AS(at(seed, key), Error);
  CHECK_THROWS_AS(at("nonsense", key), Error);
  CHECK_THROWS_AS(at("0.0.0.0:0", key), Error);
}

TEST_CASE("datagrams: a second name of the same place is no second seed's place") {
  const RunKey key(make_key_pair());
  std::string port;
  {
    const SealedDatagrams free = at("127.0.0.1:0", key);
    port = free.address().substr(free.address().find(':'));
  }
  const SealedDatagrams first = at("", key, {"localhost" + port});
  CHECK(first.address() == "127.0.0.1" + port);
  const SealedDatagrams second = at("", key, {"localhost" + port});
  CHECK(second.address().starts_with("127.0.0.1:"));
  CHECK(second.address() != first.address());
}

TEST_CASE("datagrams: names that nobody knows are no reason to listen on loopback") {
  const RunKey key(make_key_pair());
  CHECK_THROWS_AS(at("", key, {"no-such-host.invalid:9000"}), Error);
  const SealedDatagrams other = at("", key, {"no-such-host.invalid:9000", "127.0.0.1:1"});
  CHECK(other.address().starts_with("127.0.0.1:"));
}

TEST_CASE("a run's key: nodes know each other's keys by name, and only with it") {
  const KeyPair shared = make_key_pair();
  const RunKey key(shared);
  CHECK(RunKey(shared).node_keys("a").public_key == key.node_keys("a").public_key);
  CHECK(key.node_keys("a").public_key != key.node_keys("b").public_key);
  CHECK(RunKey(make_key_pair()).node_keys("a").public_key != key.node_keys("a").public_key);
  CHECK(key.node_keys("a").public_key != shared.public_key);
  CHECK(key.node_keys("a").public_key.sound());
  CHECK(RunKey::open().is_open());
  CHECK_FALSE(key.is_open());
}

TEST_CASE("datagrams: another address of loopback is another process's, whatever its port") {
  const RunKey key(make_key_pair());
  SealedDatagrams one = at("127.0.0.1:0", key);
  const std::string port = one.address().substr(one.address().rfind(':'));
  SealedDatagrams other = at("127.0.0.2" + port, key);
  CHECK(one.is_at(one.address()));
  CHECK(other.is_at(other.address()));
  CHECK_FALSE(one.is_at(other.address()));
  CHECK_FALSE(other.is_at(one.address()));
  CHECK_FALSE(one.is_at("127.0.0.1:1"));
}

TEST_CASE("datagrams: a place by name is the own one, and loopback in numbers another process's") {
  const RunKey key(make_key_pair());
  SealedDatagrams one = at("127.0.0.1:0", key);
  const std::string port = one.address().substr(one.address().rfind(':'));
  const Deadline late = Deadline::after(20s);
  while (!one.is_at("localhost" + port) && !late.expired()) {  // its name is looked up
    std::this_thread::yield();
  }
  CHECK(one.is_at("localhost" + port));
  CHECK(one.is_alone_at("localhost" + port));
  CHECK_FALSE(one.is_at("localhost:1"));
  CHECK_FALSE(one.is_at("[::1]" + port));
  try {
    SealedDatagrams other = at("[::1]" + port, key);
    CHECK_FALSE(other.is_at(one.address()));
    CHECK(other.is_at(other.address()));
  } catch (const Error&) {
    MESSAGE("SKIPPED: no IPv6 here");
  }
}

}  // namespace sotto::test::sealed_datagrams_test
