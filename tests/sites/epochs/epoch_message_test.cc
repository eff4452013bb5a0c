// Messages of epochs: what is written is read, and nothing else is believed.
#include <array>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/base/philox.h>
#include <sotto/sites/epochs/epoch_message.h>

#include "sites/epochs/epoch_world.h"

namespace sotto::test::epoch_message_test {

using namespace sotto::sites;

namespace {

EpochNode random_node(RandomStream& random) {
  return {std::string(1 + random.below(9), static_cast<char>('a' + random.below(26))),
          random.next_u64(), static_cast<std::uint32_t>(random.below(9))};
}
EpochDigest random_digest(RandomStream& random) { return {random.next_u64(), random.next_u64()}; }
Ballot random_ballot(RandomStream& random) {
  return {1 + random.below(1'000), random_node(random)};
}
EpochValue random_value(RandomStream& random) {
  EpochValue value{
      .members = {}, .base = random.below(1'000), .carry = {}, .history = random_digest(random)};
  for (std::uint64_t count = random.below(6); count > 0; --count) {
    value.members.push_back(random_node(random));
  }
  for (std::uint64_t count = random.below(3); count > 0; --count) {
    value.unequal.push_back(random_node(random));
  }
  if (random.below(2) == 0) {
    value.carry = random_digest(random);
  }
  return value;
}
EpochPromise random_promise(RandomStream& random) {
  EpochPromise promise{.by = random_node(random),
                       .step = random.below(1'000),
                       .mean = {},
                       .leaving = random.below(2) == 0,
                       .unequal = random.next_u64(),
                       .accepted = {}};
  if (random.below(2) == 0) {
    promise.mean = random_digest(random);
  }
  if (random.below(2) == 0) {
    promise.accepted = {random_ballot(random), random_value(random)};
  }
  return promise;
}

/// One of each kind; `bytes` is what they carry.
std::vector<EpochMessage> random_messages(RandomStream& random, std::span<const std::byte> bytes) {
  const EpochHeader header{random_digest(random), random.below(1'000),
                           static_cast<std::uint32_t>(random.below(1'000))};
  const Round step = random.below(1'000);
  const std::vector<EpochBody> bodies = {
      ChunkMessage{step, static_cast<std::uint16_t>(random.below(64)), SharedBytes::copy(bytes)},
      PartMessage{PartMessage::Standing::held,
                  step,
                  random_digest(random),
                  5,
                  3,
                  {0, 2, 4},
                  SharedBytes::copy(bytes)},
      WantMessage{step, kAllParts},
      HaveMessage{
          step, random_digest(random), random.below(2) == 0, {step / 2, random_digest(random)}},
      PrepareMessage{random_ballot(random)},
      PromiseMessage{random_ballot(random), random_promise(random)},
      OutvotedMessage{random_ballot(random)},
      AcceptMessage{random_ballot(random), random_value(random)},
      AcceptedMessage{random_ballot(random)},
      DecideMessage{random_value(random)},
      AskMessage{},
      EnteredMessage{},
      JoinMessage{step, std::nullopt, {0.25, step, random.next_u64()}},
      DonorMessage{step, step / 2,
                   random.below(2) == 0 ? std::nullopt : std::optional(step - step / 3),
                   StepSettings{0.5, step, random.next_u64()}},
      FetchMessage{step, 7},
      PieceMessage{step, random_digest(random), 9, 8, SharedBytes::copy(bytes)}};
  std::vector<EpochMessage> messages;
  for (const EpochBody& body : bodies) {
    messages.push_back({header, body});
  }
  return messages;
}

}  // namespace

TEST_CASE("epochs: messages come back as they were written, and no shorter or longer one does") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed});
    const std::vector<std::byte> bytes(random.below(20), std::byte{7});
    std::vector<EpochMessage> messages = random_messages(random, bytes);
    REQUIRE(messages.size() == std::variant_size_v<EpochBody>);
    for (std::size_t kind = 0; kind < messages.size(); ++kind) {
      CAPTURE(kind);
      REQUIRE(messages[kind].body.index() == kind);
      const std::vector<std::byte> written = encode(messages[kind]);
      const auto read = parse_epoch(written);
      REQUIRE(read.ok());
      CHECK(read->header == messages[kind].header);
      CHECK(encode(*read) == written);
      // Payloads may have any length; all else has one.
      const bool open = kind == 0 || kind == 1 || kind == 15;
      std::vector<std::byte> longer = written;
      longer.push_back(std::byte{0});
      CHECK(parse_epoch(longer).ok() == open);
      const std::size_t kept = written.size() - (open ? bytes.size() : 0);
      for (std::size_t length = 0; length < kept; ++length) {
        CHECK_FALSE(parse_epoch(SharedBytes::copy(std::span(written).first(length))).ok());
      }
    }
  }
}

TEST_CASE("epochs: fields that cannot be are refused") {
  RandomStream random({.seed = 1});
  const EpochNode node = random_node(random);
  const auto refused = [](const EpochBody& body) {
    return parse_epoch(encode(EpochMessage{{}, body})).status().fault() == Fault::malformed;
  };
  CHECK(refused(DecideMessage{{.members = {node, node}}}));
  CHECK(refused(DecideMessage{{.members = {{"", 1, 0}}}}));
  CHECK(refused(DecideMessage{{.members = std::vector<EpochNode>(65, node)}}));
  CHECK(refused(DecideMessage{{.members = {{"two\nlines", 1, 0}}}}));
  CHECK(refused(DecideMessage{{.members = {{std::string(101, 'x'), 1, 0}}}}));
  CHECK(refused(DecideMessage{{.members = {node}, .base = kMostCount + 1}}));
  CHECK(refused(PartMessage{.parts = 3, .part = 3, .who = {0}}));
  CHECK(refused(PartMessage{.parts = 3, .part = 0, .who = {}}));
  CHECK(refused(PartMessage{.parts = 3, .part = 0, .who = {1, 1}}));
  CHECK(refused(PartMessage{.parts = 3, .part = 0, .who = {0, 3}}));
  CHECK(refused(PartMessage{.parts = 65, .part = 0, .who = {0}}));
  CHECK(refused(PieceMessage{.count = 2, .index = 2}));
  CHECK(refused(PieceMessage{.count = 0, .index = 0}));
  CHECK(refused(FetchMessage{1, kMostPieces}));
  std::vector<std::byte> other = encode(EpochMessage{{}, AskMessage{}});
  other[1] = std::byte{kEpochProtocol + 1};
  CHECK_FALSE(parse_epoch(other).ok());
  other[1] = std::byte{kEpochProtocol};
  other[0] = std::byte{17};
  CHECK_FALSE(parse_epoch(other).ok());
}

TEST_CASE("epochs: hostile bytes neither crash a node nor read beyond a message") {
  EpochWorld world({.seed = 5, .founders = {"a", "b", "c"}});
  for (const char* name : {"a", "b", "c"}) {
    world.start(name);
  }
  world.run(EpochTime(2'000));
  EpochMember& member = *world.at("a").member;
  const EpochWorld::Process& sender = world.at("b");
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed});
    std::vector<std::byte> bytes(random.below(60));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random.below(256));
    }
    auto messages = random_messages(random, bytes);
    EpochMessage message = messages[random.below(messages.size())];
    if (random.below(2) == 0) {  // one that belongs to the run
      message.header = {member.history(), member.epoch(), 0};
    }
    // A vote for members that are none is what a liar may say; nodes of a run trust each other.
    if (std::holds_alternative<DecideMessage>(message.body) ||
        std::holds_alternative<HaveMessage>(message.body)) {
      continue;
    }
    std::vector<std::byte> written = encode(message);
    for (std::uint64_t flips = random.below(4); flips > 0 && !written.empty(); --flips) {
      written[random.below(written.size())] ^= static_cast<std::byte>(1U << random.below(8));
    }
    written.resize(written.size() - random.below(written.size() / 4 + 1));
    const auto kind = written.empty() ? 0 : std::to_integer<int>(written[0]);
    if (kind == 4 || kind == 10) {
      continue;
    }
    (void)member.receive(sender.name, sender.incarnation, written, world.now());
    (void)member.released();
  }
  CHECK(member.standing() != EpochStanding::failed);
}

}  // namespace sotto::test::epoch_message_test
