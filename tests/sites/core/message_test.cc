// The bytes of what sites say to each other, and that no others are taken.
#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/sites/core/message.h>

namespace sotto::test::message_test {

using namespace sotto::sites;

namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

Hello example_hello() {
  Hello hello;
  for (std::size_t k = 0; k < hello.agreement.size(); ++k) {
    hello.agreement[k] = static_cast<std::byte>(k);
  }
  hello.incarnation = 0x0123456789abcdef;
  hello.life = 3;
  hello.has_model = hello.hears = hello.tells = true;
  hello.round = 41;
  hello.degree = 2;
  hello.yours = 0xfedcba9876543210;
  hello.applied = 7;
  hello.oldest = 8;
  hello.next = 10;
  return hello;
}

const std::vector<std::byte>& example_payload() {
  static const std::vector<std::byte> payload = {std::byte{0xaa}, std::byte{0xbb}};
  return payload;
}

/// One of each kind, for models of two elements.
std::vector<std::vector<std::byte>> examples() {
  return {encode(example_hello()), encode(Refusal{.reason = RefusalReason::stale, .text = "old"}),
          encode(Model{.incarnation = 1, .round = 2, .values = {1.0F, -2.0F}}),
          encode(Parcel{.incarnation = 1, .sequence = 5, .round = 6, .payload = example_payload()}),
          encode(Receipt{
              .incarnation = 1, .applied = 4, .round = 6, .own_steps = 9, .wants_whole = true})};
}

bool refused(std::span<const std::byte> bytes) { return !parse(bytes, 2).ok(); }

/// `bytes` with those at `offset` replaced.
template <typename T>
std::vector<std::byte> with(std::vector<std::byte> bytes, std::size_t offset, T value) {
  const auto raw = std::as_bytes(std::span<const T, 1>(&value, 1));
  std::ranges::copy(raw, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  return bytes;
}

// Where the fields of a hello stand.
constexpr std::size_t kProtocolAt = 1;
constexpr std::size_t kIncarnationAt = 34;
constexpr std::size_t kLifeAt = 42;
constexpr std::size_t kFlagsAt = 46;
constexpr std::size_t kRoundAt = 50;
constexpr std::size_t kYoursAt = 62;
constexpr std::size_t kAppliedAt = 70;
constexpr std::size_t kOldestAt = 78;
constexpr std::size_t kNextAt = 86;

}  // namespace

TEST_CASE("core: golden bytes of every message") {
  const std::vector<std::string> golden = {
      "0104"
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
      "efcdab8967452301"
      "03000000"
      "0d000000"
      "2900000000000000"
      "02000000"
      "1032547698badcfe"
      "0700000000000000"
      "0800000000000000"
      "0a00000000000000",
      "02026f6c64", "03010000000000000002000000000000000000803f000000c0",
      "04010000000000000005000000000000000600000000000000aabb",
      "050100000000000000040000000000000006000000000000000900000001"};
  const auto messages = examples();
  for (std::size_t k = 0; k < golden.size(); ++k) {
    CHECK(hex(messages[k]) == golden[k]);
  }
}

TEST_CASE("core: messages come back as they were") {
  const auto messages = examples();
  const auto hello = parse(messages[0], 2);
  REQUIRE(hello.ok());
  const Hello& said = std::get<Hello>(*hello);
  CHECK(said.agreement == example_hello().agreement);
  CHECK(said.incarnation == 0x0123456789abcdef);
  CHECK(said.life == 3);
  CHECK(said.has_model);
  CHECK_FALSE(said.wants_model);
  CHECK(said.hears);
  CHECK(said.tells);
  CHECK(said.degree == 2);
  CHECK(said.next == 10);
  const auto refusal = parse(messages[1], 2);
  REQUIRE(refusal.ok());
  CHECK(std::get<Refusal>(*refusal).reason == RefusalReason::stale);
  CHECK(std::get<Refusal>(*refusal).text == "old");
  const auto model = parse(messages[2], 2);
  REQUIRE(model.ok());
  CHECK(std::get<Model>(*model).values == std::vector<float>{1.0F, -2.0F});
  const auto parcel = parse(messages[3], 2);
  REQUIRE(parcel.ok());
  CHECK(std::get<Parcel>(*parcel).sequence == 5);
  CHECK(std::ranges::equal(std::get<Parcel>(*parcel).payload, example_payload()));
  const auto receipt = parse(messages[4], 2);
  REQUIRE(receipt.ok());
  CHECK(std::get<Receipt>(*receipt).applied == 4);
  CHECK(std::get<Receipt>(*receipt).own_steps == 9);
  CHECK(std::get<Receipt>(*receipt).wants_whole);
}

TEST_CASE("core: every truncation and every trailing byte is refused, or changes the text") {
  const auto messages = examples();
  for (std::size_t k = 0; k < messages.size(); ++k) {
    const auto& message = messages[k];
    // A refusal ends with its text, a parcel with its payload.
    const std::size_t open_from = k == 1 ? 2 : k == 3 ? 25 : message.size();
    for (std::size_t length = 0; length < message.size(); ++length) {
      CAPTURE(k);
      CAPTURE(length);
      CHECK(refused(std::span(message).first(length)) == (length < open_from));
    }
    if (open_from == message.size()) {
      auto longer = message;
      longer.push_back(std::byte{0});
      CHECK(refused(longer));
    }
  }
}

TEST_CASE("core: bad input: unknown kinds, versions, flags, far-future rounds, sequence wrap") {
  const auto hello = examples()[0];
  for (int kind = 0; kind < 256; ++kind) {
    if (kind < 1 || kind > 5) {
      CHECK(refused(with(hello, 0, static_cast<std::uint8_t>(kind))));
    }
  }
  constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
  for (const auto protocol : std::vector<std::uint8_t>{0, 1, 3, 5, 255}) {
    CHECK(refused(with(hello, kProtocolAt, protocol)));
  }
  CHECK(refused(with(hello, kIncarnationAt, std::uint64_t{0})));
  CHECK(refused(with(hello, kLifeAt, std::uint32_t{0})));
  CHECK(refused(with(hello, kFlagsAt, std::uint32_t{32})));
  CHECK(refused(with(hello, kFlagsAt, std::uint32_t{16 | 8})));  // an observer that sends
  CHECK(refused(with(hello, kFlagsAt, std::uint32_t{0x80000001})));
  CHECK(refused(with(hello, kRoundAt, kMostCount + 1)));
  CHECK(refused(with(hello, kRoundAt, kHuge)));
  CHECK(refused(with(hello, kYoursAt, std::uint64_t{0})));  // yet it has applied parcels
  CHECK(refused(with(hello, kAppliedAt, kMostCount + 1)));
  CHECK(refused(with(hello, kOldestAt, std::uint64_t{0})));
  CHECK(refused(with(hello, kOldestAt, std::uint64_t{11})));  // after the next one
  CHECK(refused(with(hello, kNextAt, std::uint64_t{7})));
  CHECK(refused(with(hello, kNextAt, kHuge)));

  const auto refusal = examples()[1];
  CHECK(refused(with(refusal, 1, std::uint8_t{0})));
  CHECK(refused(with(refusal, 1, std::uint8_t{5})));
  CHECK(refused(with(refusal, 2, std::uint8_t{0x1b})));  // an escape sequence for a terminal
  CHECK(refused(with(refusal, 2, std::uint8_t{0xff})));  // no UTF-8
  auto long_text = refusal;
  long_text.resize(2 + kMostText + 1, std::byte{'a'});
  CHECK(refused(long_text));
  long_text.pop_back();
  CHECK_FALSE(refused(long_text));

  const auto parcel = examples()[3];
  for (const std::size_t offset : {1U, 9U, 17U}) {
    CHECK(refused(with(parcel, offset, std::uint64_t{0})));
  }
  CHECK(refused(with(parcel, 9, kHuge)));
  CHECK(refused(with(parcel, 17, kHuge)));

  const auto receipt = examples()[4];
  CHECK(refused(with(receipt, 1, std::uint64_t{0})));
  CHECK(refused(with(receipt, 9, kHuge)));
  CHECK(refused(with(receipt, 17, kHuge)));
  CHECK(refused(with(receipt, 25, std::uint32_t{0})));
  CHECK(refused(with(receipt, 25, std::uint32_t{kMostInterval + 1})));
  CHECK(refused(with(receipt, 29, std::uint8_t{2})));
}

TEST_CASE("core: models of another dimension, or with NaN and infinity, are refused") {
  const auto model = examples()[2];
  CHECK_FALSE(parse(model, 3).ok());
  CHECK_FALSE(parse(model, 1).ok());
  CHECK_FALSE(parse(model, 0).ok());
  CHECK_FALSE(parse(model, std::numeric_limits<std::size_t>::max() / 4).ok());
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const auto parsed = parse(with(model, 21, bad), 2);
    CHECK(parsed.status().fault() == Fault::non_finite);
  }
}

TEST_CASE("core: a refusal's text is cut between characters, and made printable") {
  std::string text(kMostText - 1, 'a');
  text += "ü";
  const auto cut = parse(encode(Refusal{.reason = RefusalReason::broke_rule, .text = text}), 2);
  REQUIRE(cut.ok());
  CHECK(std::get<Refusal>(*cut).text == std::string(kMostText - 1, 'a'));
  const auto escaped =
      parse(encode(Refusal{.reason = RefusalReason::broke_rule, .text = "\x1b[2J"}), 2);
  REQUIRE(escaped.ok());
  CHECK(std::get<Refusal>(*escaped).text == "\\x1b[2J");
}

TEST_CASE("core: no message is longer than max_message_bytes says") {
  for (const auto& message : examples()) {
    CHECK(message.size() <= max_message_bytes(2, example_payload().size()));
  }
  CHECK(encode(Refusal{.text = std::string(5000, 'a')}).size() <= max_message_bytes(1, 1));
}

}  // namespace sotto::test::message_test
