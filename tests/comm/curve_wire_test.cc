// The secured transport against clients that are not ZeroMQ: raw TCP, and CurveZMQ made by hand.
// Tests are named after the fault that they inject.
#ifdef SOTTO_HAVE_ZMQ
#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/comm/stores.h>
#include <sotto/comm/trust/peers_watch.h>

#include "outsider.h"
#include "raw_curve.h"
#include "support/scratch.h"

namespace sotto::test::curve_wire_test {

namespace {

constexpr std::size_t kPayload = 100;

/// Rank 0 of three that know each other, met by 1 and 2, of which 1 is made by hand.
struct Trio {
  Trio() {
    node.start();
    rank_2.send(hello_message(kRun, 2, 0));
    REQUIRE(rank_2.let_in());  // so the node listens
    rank_1.emplace(node.endpoint(), keys_of(1), keys_of(0).public_key);
    rank_1->claim("Identity", "one");
    REQUIRE(rank_1->let_in());
    rank_1->send(hello_message(kRun, 1, 0));
    const Status ready = node.ready();
    REQUIRE_MESSAGE(ready.ok(), ready.message());
    node.listen(1, 5);
  }
  RawCurve client(const KeyPair& keys) { return {node.endpoint(), keys, keys_of(0).public_key}; }
  /// After all attacks: nothing has come of them, and who should be heard is heard.
  void expect_rank_1_alone() {
    node.expect_nothing();
    rank_1->send_frame(1, 5, kPayload);
    node.expect_frame(1, 5, kPayload);
  }

  GuardedNode node{complete(3)};
  Outsider rank_2{node.endpoint(), keys_of(2)};
  std::optional<RawCurve> rank_1;
};

/// Says all that rank 1 would say, whether it was let in or not.
void speak_as_rank_1(RawCurve& client) {
  client.send(hello_message(kRun, 1, 0));
  client.send_frame(1, 5, kPayload);
}

Bytes random_bytes(RandomStream& random, std::size_t count) {
  Bytes bytes(count);
  for (auto& byte : bytes) {
    byte = static_cast<std::byte>(random.next_u32());
  }
  return bytes;
}

/// Takes a listener's place on the wire, and tells who comes that he is not admitted: what CurveZMQ
/// lets anybody say.
class Forger {
 public:
  explicit Forger(int port) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    const sockaddr_in address = loopback(port);
    REQUIRE(::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_, 10) == 0);
  }
  ~Forger() { ::close(listener_); }
  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;

  /// The next one that comes, in answer to its HELLO; or at once, which the protocol does not know.
  void refuse(bool at_once = false) const {
    const int client = ::accept(listener_, nullptr, nullptr);
    REQUIRE(client >= 0);
    const auto say = [&](const Bytes& words) {
      (void)::send(client, words.data(), words.size(), MSG_NOSIGNAL);
    };
    say(greeting("CURVE", 1, true));
    std::array<std::byte, 64 + 2 + 200> heard{};
    if (!at_once) {
      (void)::recv(client, heard.data(), heard.size(), MSG_WAITALL);
    }
    Bytes error;
    append_text(error, std::string_view("\x05"
                                        "ERROR\x03"
                                        "400",
                                        10));
    say(command_frame(error));
    while (::recv(client, heard.data(), heard.size(), 0) > 0) {
    }
    ::close(client);
  }

 private:
  int listener_;
};

}  // namespace

TEST_CASE("unknown key: CurveZMQ made by hand is refused, and delivers nothing") {
  Trio trio;
  auto stranger = trio.client(make_key_pair());
  CHECK_FALSE(stranger.let_in());
  CHECK(stranger.answer() ==
        "\x05"
        "ERROR\x03"
        "400");
  speak_as_rank_1(stranger);
  (void)stranger.connection().read_to_end();

  // This client does not wait to be let in, and claims to be somebody.
  auto hasty = trio.client(make_key_pair());
  hasty.claim("Identity", "one");
  hasty.claim("User-Id", keys_of(1).public_key.text());
  hasty.connection().write(greeting("CURVE"));
  hasty.connection().write(hasty.hello());
  REQUIRE(hasty.take_greeting());
  REQUIRE(hasty.take_welcome());
  hasty.connection().write(hasty.initiate());
  speak_as_rank_1(hasty);
  CHECK_FALSE(hasty.take_ready());
  trio.expect_rank_1_alone();
}

TEST_CASE("revoked key: its connection is closed, and it is not let in again") {
  Trio trio;
  trio.rank_1->send_frame(1, 5, kPayload);
  trio.node.expect_frame(1, 5, kPayload);
  trio.node.listen(2, 6);
  auto lines = trio.node.peers->peers();
  lines.erase(lines.begin() + 1);
  trio.node.peers->update_allow_list(lines);
  trio.rank_1->send_frame(1, 6, kPayload);
  trio.node.expect_loss(1, "does not trust it any more");
  (void)trio.rank_1->connection().read_to_end();
  auto again = trio.client(keys_of(1));
  CHECK_FALSE(again.let_in());
  speak_as_rank_1(again);
  trio.node.expect_nothing();
  trio.rank_2.send_frame(2, 6, kPayload);
  trio.node.expect_frame(2, 6, kPayload);
}

TEST_CASE("revoked key: taking its line out of the peers file is enough") {
  Trio trio;
  const Scratch directory;
  const auto path = directory.path() / "peers.csv";
  const auto put = [&](const std::vector<TrustedPeer>& lines) {
    std::ofstream out(directory.path() / "new");
    out << "rank,key,address\n";
    for (const TrustedPeer& line : lines) {
      out << line.rank << ',' << line.key.text() << ',' << line.address << '\n';
    }
    out.close();
    std::filesystem::rename(directory.path() / "new", path);
  };
  auto lines = trio.node.peers->peers();
  put(lines);
  const PeersWatch watch(path.string(), trio.node.peers, [](const PeersNews&) {});
  lines.erase(lines.begin() + 1);
  put(lines);
  trio.node.expect_loss(1, "does not trust it any more");
  speak_as_rank_1(*trio.rank_1);
  (void)trio.rank_1->connection().read_to_end();
  auto again = trio.client(keys_of(1));
  CHECK_FALSE(again.let_in());
  trio.node.expect_nothing();
}

TEST_CASE("stolen routing id: it takes nothing over, whoever claims it") {
  Trio trio;
  SUBCASE("while its owner is there") {
    auto thief = trio.client(keys_of(2));
    thief.claim("Identity", "one");
    thief.claim("User-Id", keys_of(1).public_key.text());
    CHECK(thief.let_in());
    speak_as_rank_1(thief);
    auto stranger = trio.client(make_key_pair());
    stranger.claim("Identity", "one");
    CHECK_FALSE(stranger.let_in());
    speak_as_rank_1(stranger);
    trio.expect_rank_1_alone();
  }
  SUBCASE("once its owner has gone") {
    trio.rank_1->connection().close();
    auto thief = trio.client(keys_of(2));
    thief.claim("Identity", "one");
    CHECK(thief.let_in());
    speak_as_rank_1(thief);
    trio.node.expect_loss(1, "without a goodbye");
    trio.node.expect_nothing();
  }
}

TEST_CASE("no encryption: NULL, PLAIN and older versions made by hand deliver nothing") {
  Trio trio;
  const auto hello = hello_message(kRun, 1, 0);
  Bytes ready;
  append_text(ready, "\x05READY");
  append(ready, property("Socket-Type", "DEALER"));
  append(ready, property("Identity", "one"));
  append(ready, property("User-Id", keys_of(1).public_key.text()));
  Bytes login;
  append_text(login, "\x05HELLO\x02me\x02me");
  Bytes initiate;
  append_text(initiate, "\x08INITIATE");
  append(initiate, property("Socket-Type", "DEALER"));
  struct Way {
    const char* mechanism;
    Bytes first;
    Bytes second;
  };
  for (const Way& way :
       {Way{"NULL", ready, {}}, Way{"PLAIN", login, initiate}, Way{"CURVE", ready, {}},
        Way{"GSSAPI", initiate, {}}, Way{"", ready, {}}}) {
    for (const int minor : {0, 1, 2}) {
      CAPTURE(way.mechanism);
      CAPTURE(minor);
      RawConnection raw(trio.node.endpoint());
      REQUIRE(raw.connected());
      raw.write(greeting(way.mechanism, minor, minor == 2));
      raw.write(command_frame(way.first));
      raw.write(command_frame(way.second));
      raw.write(frame_of(hello, 0));
      CHECK(raw.read_to_end() <= 64);  // a greeting, and the connection is closed
    }
  }
  trio.expect_rank_1_alone();
}

TEST_CASE("replayed INITIATE: it fits one handshake only") {
  Trio trio;
  auto first = trio.client(keys_of(1));
  first.connection().write(greeting("CURVE"));
  const auto hello = first.hello();
  first.connection().write(hello);
  REQUIRE(first.take_greeting());
  REQUIRE(first.take_welcome());
  const auto initiate = first.initiate();
  first.connection().write(initiate);
  REQUIRE(first.take_ready());
  const auto introduction = first.message(hello_message(kRun, 1, 0));
  first.connection().close();

  SUBCASE("behind a HELLO of now") {
    auto again = trio.client(keys_of(1));
    again.connection().write(greeting("CURVE"));
    again.connection().write(again.hello());
    REQUIRE(again.take_greeting());
    REQUIRE(again.take_welcome());
    again.connection().write(initiate);
    again.connection().write(introduction);
    CHECK_FALSE(again.take_ready());
  }
  SUBCASE("behind the HELLO of then") {
    auto again = trio.client(keys_of(1));
    again.connection().write(greeting("CURVE"));
    again.connection().write(hello);
    REQUIRE(again.take_greeting());
    again.connection().write(initiate);
    again.connection().write(introduction);
    CHECK_FALSE(again.take_welcome());  // made for a passing key that we do not have here
    CHECK_FALSE(again.take_ready());
  }
  SUBCASE("with the cookie of now") {
    auto again = trio.client(keys_of(1));
    again.connection().write(greeting("CURVE"));
    again.connection().write(again.hello());
    REQUIRE(again.take_greeting());
    REQUIRE(again.take_welcome());
    auto mixed = initiate;
    const auto fresh = again.initiate();
    std::copy_n(fresh.begin(), 3 + 9 + 96, mixed.begin());
    again.connection().write(mixed);
    CHECK_FALSE(again.take_ready());
  }
  trio.expect_rank_1_alone();
}

TEST_CASE("replayed MESSAGE: within its own connection it ends that, and is not delivered") {
  Trio trio;
  const auto frame = make_frame(1, 0, {.round = 5}, kPayload);
  auto chunk = chunk_message({.round = 5}, frame.size(), 0, frame.size());
  std::copy(frame.begin(), frame.end(), chunk.end() - static_cast<std::ptrdiff_t>(frame.size()));
  const auto message = trio.rank_1->message(chunk);
  trio.rank_1->connection().write(message);
  trio.node.expect_frame(1, 5, kPayload);
  trio.node.listen(1, 6);
  trio.rank_1->connection().write(message);
  trio.node.expect_loss(1, "without a goodbye");
  trio.node.expect_nothing();
}

TEST_CASE("a passing key of low order, with which all could read along, gets no answer") {
  Trio trio;
  auto weak = trio.client(keys_of(1));
  auto hello = weak.hello();
  std::fill_n(hello.begin() + 2 + 8 + 72, 32, std::byte{0});
  weak.connection().write(greeting("CURVE"));
  weak.connection().write(hello);
  CHECK_FALSE((weak.take_greeting() && weak.take_welcome()));
  trio.expect_rank_1_alone();
}

TEST_CASE(
    "garbage of every kind: at every step of a handshake and behind it, nothing is delivered") {
  const std::uint64_t seed = 31;
  CAPTURE(seed);
  RandomStream random({.seed = seed});
  Trio trio;
  // A listed key and an unknown one; what is said at one step is damaged, or something else.
  const auto damage = [&](Bytes words) {
    switch (random.below(4)) {
      case 0:  // a flipped bit
        words[random.below(words.size())] ^= static_cast<std::byte>(1U << random.below(8));
        return words;
      case 1:  // another length
        words[1] = static_cast<std::byte>(random.next_u32());
        return words;
      case 2:  // cut short, and something else behind
        words.resize(random.below(words.size()));
        append(words, random_bytes(random, 300));
        return words;
      default:
        return random_bytes(random, words.size());
    }
  };
  for (int i = 0; i < 160; ++i) {
    CAPTURE(i);
    const int damaged = i % 4;
    auto client = trio.client(i % 8 < 4 ? keys_of(2) : make_key_pair());
    const auto say = [&](int step, const Bytes& words) {
      client.connection().write(step == damaged ? damage(words) : words);
    };
    say(0, greeting("CURVE"));
    say(1, client.hello());
    if (damaged > 1) {
      REQUIRE(client.take_greeting());
      REQUIRE(client.take_welcome());
      say(2, client.initiate());
    }
    if (damaged > 2 && !client.take_ready()) {
      continue;  // the unknown key
    }
    say(3, client.message(hello_message(kRun, 1, 0)));
    client.send_frame(1, 5, kPayload);
  }
  trio.expect_rank_1_alone();
}

TEST_CASE("a refusal that is forged on the way: the node asks again, and meets its peer") {
  constexpr int kForgeries = 3;
  const std::array<int, 2> ports = {free_port(), free_port()};
  auto forger = std::make_unique<Forger>(ports[0]);
  std::atomic<bool> gone{false};
  spawn(3, [&](Rank rank) {
    if (rank == 2) {  // sits on the wire, and goes when he was believed a few times
      for (int i = 0; i < kForgeries; ++i) {
        forger->refuse(i % 2 == 1);
      }
      forger.reset();
      gone = true;
      gone.notify_all();
      return;
    }
    if (rank == 0) {
      gone.wait(false);
    }
    const auto transport = connect("zmq", on_ring(rank, ports, 0));
    swap_frames(*transport, ring(2), rank, {.round = 0}, 100);
  });
}

TEST_CASE("a refusal that is forged on the way: the store is asked again, also if it came before") {
  const int port = free_port();
  auto forger = std::make_unique<Forger>(port);
  const auto client = make_tcp_store("127.0.0.1", port, false, {.security = security_of(2, 1)});
  forger->refuse();  // the connection that the client holds in stock
  std::thread asking([&] {
    const auto value = client->get("model", generous());
    REQUIRE_MESSAGE(value.ok(), value.status().message());
    CHECK(value->size() == 3);
  });
  forger->refuse();
  forger->refuse(true);
  forger->refuse();
  forger.reset();
  const auto server = make_tcp_store("127.0.0.1", port, true, {.security = security_of(2, 0)});
  REQUIRE(server->set("model", Bytes(3)).ok());
  asking.join();
}
#endif

}  // namespace sotto::test::curve_wire_test
